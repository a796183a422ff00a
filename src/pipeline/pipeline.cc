#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "client/admin.h"
#include "client/topic_maker.h"
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

/// Calls `act` once a second on a thread of its own until stopped.
class Ticker {
 public:
  explicit Ticker(std::function<void()> act) : act_(std::move(act)), thread_([this] { run(); }) {}
  ~Ticker() { stop(); }
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, 1s, [this] { return stopping_; })) act_();
  }

  const std::function<void()> act_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

Duration left_until(MonoTime deadline) {
  return std::max<Duration>(deadline - system_clock().now().mono, Duration::zero());
}

}  // namespace

Result<std::unique_ptr<Pipeline>> Pipeline::start(PipelineSettings settings,
                                                  const std::function<void(const std::string&)>& notice) {
  std::unique_ptr<Pipeline> self(new Pipeline);
  self->settings_ = std::move(settings);
  self->settings_.parts.agent.most_files = runtime::raise_file_limit() / 2;
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
  if (auto done = set_broker_defaults(config); !done) return done;
  std::vector<Setting> values = settings_.parts.broker;
  values.push_back({"log.dirs", (settings_.data / "broker").string(), "--data"});
  values.push_back({"listeners", "PLAINTEXT://" + address->text(), "--listen"});
  for (const auto& [name, value, where] : values)
    if (auto done = config.set(name, value, where); !done) return done;
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
  return client::make_missing_topics(
      admin, client::pipeline_topics(parts.agent.topic, parts.agent.urgent_topic, parts.sink.dead_letter_topic));
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
  ProducerSettings producer_settings = settings_.parts.producer_of_agent();
  producer_settings.window = true;
  if (settings.state_directory.empty()) settings.state_directory = settings_.data / "agent";
  settings.own_paths.push_back(settings_.data);
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
  std::lock_guard lock(directives_mutex_);  // before asking: an older answer must not be followed after a newer one
  const auto told = guard_->directives(
      {.client_id = parts.producer.client_id, .topics = {parts.agent.topic, parts.agent.urgent_topic}, .laws = false});
  followed_.follow(told, [this](const Directive& directive) { agent_->producer().apply(directive); });
}

const guard::GroupLag* Pipeline::group_in(const guard::LagSnapshot& snapshot) const {
  const auto group = snapshot.groups.find(settings_.parts.sink.consumer.group_id);
  return group == snapshot.groups.end() || group->second.stale ? nullptr : &group->second;
}

std::optional<double> Pipeline::lag_seconds(const guard::LagSnapshot& snapshot) const {
  const guard::GroupLag* group = group_in(snapshot);
  return group && group->time ? std::optional(to_seconds(*group->time)) : std::nullopt;
}

std::optional<std::int64_t> Pipeline::guard_lag() const {
  const auto snapshot = guard_->lag();
  const guard::GroupLag* group = group_in(*snapshot);
  return group ? group->records : std::nullopt;
}

Status Pipeline::tick(MonoTime now) {
  follow_directives();
  const agent::AgentStats read = agent_->stats();
  const sink::SinkStats stored = sink_->stats();
  Status status{.read = read.read,
                .acked = read.acked,
                .stored = stored.stored,
                .lag = shown_lag(guard_lag(), read.acked, stored.stored + stored.duplicates + stored.dead_lettered),
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
    shown_.lag = status.lag;
    shown_.lag_seconds = lag_seconds(*guard_->lag());
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

Report Pipeline::finish(Duration deadline, const std::function<void(const Status&)>& shown) {
  const MonoTime end = system_clock().now().mono + deadline;
  Report report;
  agent_->stop_inputs();
  report.lag_seconds = lag_seconds(*guard_->measure(std::min<Duration>(1s, left_until(end))));
  Ticker ticker([&] {
    const Status status = tick(system_clock().now().mono);
    if (shown) shown(status);
  });
  // Getting everything into the broker takes next to nothing unless it is gone: the store gets what is
  // left.
  agent_->stop(left_until(end));
  progress_->stop();
  if (auto left = sink_->drain(left_until(end)); left)
    report.lag = *left;
  else
    log::warn("how much the store has still to read cannot be told: {}", left.error().message);
  sink_->stop(std::max<Duration>(left_until(end), 500ms));
  if (auto left = sink_->lag(); left) report.lag = *left;
  ticker.stop();

  const agent::AgentStats read = agent_->stats();
  const sink::SinkStats stored = sink_->stats();
  report.offered = read.offered;
  report.read = read.read;
  report.acked = read.acked;
  report.agent_in_memory = read.in_memory;
  report.spooled = read.spooled;
  report.shed = read.shed;
  report.rejected = read.rejected;
  report.long_lines = read.long_lines;
  report.lost_bytes = read.lost_bytes;
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
