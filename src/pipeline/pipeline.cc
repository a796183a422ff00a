#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "client/admin.h"
#include "runtime/address.h"
#include "runtime/event_loop.h"
#include "runtime/process.h"
#include "runtime/tcp.h"

namespace weir::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr int kPortsTried = 20;

/// The address asked for, or the same with the next port nobody listens on.
Result<runtime::Address> free_address(std::string_view text) {
  auto address = runtime::parse_address(text);
  if (!address) return address;
  const std::uint16_t asked = address->port;
  for (int tried = 0; tried < kPortsTried && asked + tried <= 65535; ++tried) {
    address->port = static_cast<std::uint16_t>(asked + tried);
    runtime::EventLoop probe("probe");
    auto listener = runtime::listen(probe, *address, [](const auto&) {});
    if (listener) return address;
    if (listener.error().kind != ErrorKind::kExists) return tl::unexpected(listener.error());
  }
  return fail(ErrorKind::kExists, fmt::format("{} and the {} ports after it are taken: choose another with --listen",
                                              text, kPortsTried - 1));
}

Duration left_until(MonoTime deadline) {
  return std::max<Duration>(deadline - system_clock().now().mono, Duration::zero());
}

}  // namespace

Result<std::unique_ptr<Pipeline>> Pipeline::start(PipelineSettings settings,
                                                  const std::function<void(const std::string&)>& notice) {
  runtime::raise_file_limit();
  std::unique_ptr<Pipeline> self(new Pipeline);
  self->settings_ = std::move(settings);
  const PipelineSettings& s = self->settings_;

  auto& files = runtime::posix_file_system();
  if (auto made = files.make_directories(s.data); !made) return tl::unexpected(made.error());
  auto lock = files.lock(s.data / "lock");
  if (!lock) return tl::unexpected(lock.error());
  self->lock_ = std::move(*lock);

  if (s.bootstrap.empty()) {
    if (auto done = self->start_broker(notice); !done) return tl::unexpected(done.error());
  } else {
    self->bootstrap_ = s.bootstrap;
  }
  self->settings_.parts.set_bootstrap(self->bootstrap_);
  if (auto done = self->create_topics(); !done) return tl::unexpected(done.error());
  if (auto done = self->start_sink(); !done) return tl::unexpected(done.error());
  if (auto done = self->start_agent(); !done) return tl::unexpected(done.error());
  if (auto done = self->start_guard(notice); !done) return tl::unexpected(done.error());
  self->agent_->start();
  self->last_tick_ = system_clock().now().mono;
  return self;
}

Result<void> Pipeline::start_broker(const std::function<void(const std::string&)>& notice) {
  auto address = free_address(settings_.listen);
  if (!address) return tl::unexpected(address.error());
  broker::BrokerConfig config;
  const auto set = [&config](const std::string& name, const std::string& value) {
    return config.set(name + "=" + value);
  };
  // One member, known from the start: nobody to wait for. A replication factor written for a cluster works here too.
  std::vector<std::pair<std::string, std::string>> values{{"group.initial.rebalance.delay.ms", "0"},
                                                          {"weir.replication.factor.clamp", "true"}};
  values.insert(values.end(), settings_.parts.broker.begin(), settings_.parts.broker.end());
  values.emplace_back("log.dirs", (settings_.data / "broker").string());
  values.emplace_back("listeners", "PLAINTEXT://" + address->text());
  for (const auto& [name, value] : values)
    if (auto done = set(name, value); !done) return done;
  if (auto done = config.finish(); !done) return done;
  auto started = broker::Broker::start(std::move(config), &registry_);
  if (!started) return tl::unexpected(started.error());
  broker_ = std::move(*started);
  bootstrap_ = broker_->bootstrap();
  if (address->text() != settings_.listen)
    notice(fmt::format("{} is taken, the broker listens on {}", settings_.listen, bootstrap_));
  return {};
}

Result<void> Pipeline::create_topics() {
  client::Admin admin({.bootstrap = bootstrap_, .client_id = "weir-up", .timeout = 20s});
  const Settings& parts = settings_.parts;
  for (const auto& [name, partitions] :
       {std::pair(parts.agent.topic, settings_.partitions), std::pair(parts.agent.urgent_topic, settings_.partitions),
        std::pair(parts.sink.dead_letter_topic, settings_.dead_letter_partitions)}) {
    auto made = admin.create_topic({.name = name, .partitions = partitions, .replication_factor = -1, .configs = {}});
    if (!made && made.error().kind != ErrorKind::kExists) return made;
  }
  return {};
}

Result<void> Pipeline::start_sink() {
  sink::SinkSettings& settings = settings_.parts.sink;
  if (settings.database.is_relative()) settings.database = settings_.data / settings.database;
  settings.consumer.topics = {settings_.parts.agent.urgent_topic, settings_.parts.agent.topic};
  settings.consumer.first_topics = {settings_.parts.agent.urgent_topic};
  auto opened = sink::Sink::open(settings);
  if (!opened) return tl::unexpected(opened.error());
  sink_ = std::move(*opened);
  sink_->expose(registry_);
  return {};
}

Result<void> Pipeline::start_agent() {
  agent::AgentSettings& settings = settings_.parts.agent;
  ProducerSettings producer_settings = settings_.parts.producer;
  producer_settings.window = true;
  // One budget over every stage: what the readers may hold comes out of the same buffer.memory.
  const Bytes readers = agent::Agent::reader_memory(settings);
  producer_settings.buffer_memory = std::max<Bytes>(producer_settings.buffer_memory, readers + kMiB) - readers;
  if (settings.state_directory.empty()) settings.state_directory = settings_.data / "agent";
  settings.own_directories.push_back(settings_.data);
  auto producer = Producer::open(producer_settings);
  if (!producer) return tl::unexpected(producer.error());
  auto opened = agent::Agent::open(settings, std::move(*producer), runtime::posix_file_system(), system_clock());
  if (!opened) return tl::unexpected(opened.error());
  agent_ = std::move(*opened);
  agent_->expose(registry_);
  client::ProgressFeedSettings feed;
  feed.admin.bootstrap = bootstrap_;
  feed.group = settings_.parts.sink.consumer.group_id;
  feed.topics = settings_.parts.sink.consumer.topics;
  feed.lag = producer_settings.max_lag.has_value();
  progress_ = std::make_unique<client::ProgressFeed>(feed, agent_->producer());
  progress_->start();
  return {};
}

Result<void> Pipeline::start_guard(const std::function<void(const std::string&)>& notice) {
  guard::GuardSettings& settings = settings_.parts.guard;
  settings.http.next_free_port = true;
  guard_ = std::make_unique<guard::Guard>(settings, registry_);
  guard_->set_pipeline_status([this] {
    std::lock_guard lock(status_mutex_);
    return shown_;
  });
  guard_->on_directives([this] { follow_directives(); });
  auto address = guard_->start();
  if (!address) return tl::unexpected(address.error());
  page_ = "http://" + address->text() + "/";
  if (settings.http.port != 0 && address->port != settings.http.port)
    notice(fmt::format("port {} is taken, the page is at {}", settings.http.port, page_));
  return {};
}

Pipeline::~Pipeline() {
  if (agent_ && sink_ && guard_) finish(Duration::zero());
  if (guard_) guard_->stop();
}

void Pipeline::follow_directives() {
  const Settings& parts = settings_.parts;
  const auto now_told = guard_->directives(
      {.client_id = parts.producer.client_id, .topics = {parts.agent.topic, parts.agent.urgent_topic}, .laws = false});
  std::lock_guard lock(directives_mutex_);
  auto gone = std::exchange(followed_, {});
  for (const Directive& directive : now_told) {
    agent_->producer().apply(directive);
    gone.erase(directive.scope);
    followed_.emplace(directive.scope, directive);
  }
  for (auto& [scope, directive] : gone) {
    directive.expires = MonoTime::min();
    agent_->producer().apply(directive);
  }
}

std::optional<double> Pipeline::lag_seconds() const {
  const auto snapshot = guard_->lag();
  if (!snapshot) return std::nullopt;
  const auto group = snapshot->groups.find(settings_.parts.sink.consumer.group_id);
  if (group == snapshot->groups.end() || !group->second.time) return std::nullopt;
  return to_seconds(*group->second.time);
}

std::optional<std::int64_t> Pipeline::guard_lag() const {
  const auto snapshot = guard_->lag();
  if (!snapshot) return std::nullopt;
  const auto group = snapshot->groups.find(settings_.parts.sink.consumer.group_id);
  if (group == snapshot->groups.end()) return std::nullopt;
  return group->second.records;
}

Status Pipeline::tick(MonoTime now) {
  follow_directives();
  const agent::AgentStats read = agent_->stats();
  const sink::SinkStats stored = sink_->stats();
  Status status{.read = read.read,
                .acked = read.acked,
                .stored = stored.stored,
                .lag = guard_lag(),
                .limit = read.limit,
                .latency = stored.latency};
  const double seconds = std::max(to_seconds(now - last_tick_), 0.001);
  const auto rate = [seconds](std::uint64_t after, std::uint64_t before) {
    return static_cast<double>(after - before) / seconds;
  };
  status.read_per_s = rate(status.read, last_.read);
  status.stored_per_s = rate(status.stored, last_.stored);
  {
    std::lock_guard lock(status_mutex_);
    shown_.read = status.read;
    shown_.acked = status.acked;
    shown_.stored = status.stored;
    shown_.read_per_s = status.read_per_s;
    shown_.acked_per_s = rate(status.acked, last_.acked);
    shown_.stored_per_s = status.stored_per_s;
    shown_.lag = status.lag.value_or(0);
    shown_.lag_seconds = lag_seconds().value_or(0);
    shown_.limit = status.limit;
    if (status.latency.count > 0) {
      shown_.latency_p50_ms = to_ms(status.latency.p50);
      shown_.latency_p99_ms = to_ms(status.latency.p99);
    }
    shown_.shed = metrics::sum(read.shed);
    shown_.rejected = metrics::sum(read.rejected);
  }
  last_tick_ = now;
  last_ = status;
  return status;
}

std::optional<Error> Pipeline::failed() const { return sink_->stats().failed; }

Report Pipeline::finish(Duration deadline) {
  const MonoTime end = system_clock().now().mono + deadline;
  Report report;
  agent_->stop_inputs();
  report.lag_seconds = lag_seconds();
  // Two thirds to get everything into the broker, which takes next to nothing unless it is gone: the store gets what is
  // left.
  agent_->stop(left_until(end));
  progress_->stop();
  if (auto left = sink_->drain(left_until(end)); left)
    report.lag = *left;
  else
    log::warn("how much the store has still to read cannot be told: {}", left.error().message);
  sink_->stop(std::max<Duration>(left_until(end), 500ms));
  if (auto left = sink_->lag(); left) report.lag = *left;

  const agent::AgentStats read = agent_->stats();
  const sink::SinkStats stored = sink_->stats();
  report.offered = read.offered;
  report.read = read.read;
  report.acked = read.acked;
  report.agent_in_memory = read.in_memory;
  report.spooled = read.spooled;
  report.shed = {read.shed.begin(), read.shed.end()};
  report.rejected = {read.rejected.begin(), read.rejected.end()};
  report.peak_buffer_bytes = read.peak_buffer_bytes;
  report.stored = stored.stored;
  report.duplicates = stored.duplicates;
  report.dead_lettered = stored.dead_lettered;
  report.sink_in_memory = stored.in_memory;
  report.latency = stored.latency;
  report.error_latency = stored.error_latency;

  // The clients go before the broker: nobody is left to find it gone.
  guard_->stop();
  progress_.reset();
  agent_.reset();
  sink_.reset();
  if (broker_)
    if (auto done = broker_->stop(); !done) log::error("the broker did not stop cleanly: {}", done.error().message);
  return report;
}

}  // namespace weir::pipeline
