#include "sink/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <future>
#include <thread>

#include "client/admin.h"
#include "client/kafka_settings.h"
#include "client/topic_maker.h"
#include "client/transport.h"
#include "metrics/names.h"
#include "runtime/file.h"
#include "runtime/process.h"
#include "sink/core.h"
#include "sink/sqlite_store.h"
#include "weir/producer.h"

namespace weir::sink {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(50);
constexpr Duration kClusterRetry = std::chrono::milliseconds(500);
constexpr Duration kAdminWait = std::chrono::seconds(5);

ProducerSettings dead_letter_producer(const ConsumerSettings& consumer) {
  ProducerSettings settings;
  settings.bootstrap_servers = consumer.bootstrap_servers;
  settings.client_id = consumer.client_id + "-dead-letters";
  settings.buffer_memory = 4 * client::kLargestDeadLetter;
  settings.when_full = WhenFull::kReject;
  // A record that fitted once must fit with our headers too.
  settings.max_request_size = client::kLargestDeadLetter;
  settings.passed_through = consumer.passed_through;
  return settings;
}

/// Where our own connections are plain, only the client library can speak to a cluster that asks for more.
std::string other_security(const ConsumerSettings& consumer) {
  std::string protocol;
  for (const auto& [name, value] : consumer.passed_through)
    if (name == "security.protocol") protocol = value;
  std::transform(protocol.begin(), protocol.end(), protocol.begin(), [](unsigned char c) { return std::tolower(c); });
  return protocol == "plaintext" ? "" : protocol;
}

MonoTime mono_now() { return system_clock().now().mono; }
Duration left_until(MonoTime end) { return std::max(end - mono_now(), Duration::zero()); }

}  // namespace

struct Sink::State {
  explicit State(SinkSettings s)
      : settings(std::move(s)),
        security(other_security(settings.consumer)),
        admin({.bootstrap = settings.consumer.bootstrap_servers, .client_id = "weir-sink", .timeout = kAdminWait}) {}

  Result<TopicIds> topic_ids() {
    if (!security.empty()) return TopicIds{};
    auto topics = admin.topics(settings.consumer.topics);
    if (!topics) return tl::unexpected(topics.error());
    TopicIds ids;
    for (auto& topic : *topics) ids[topic.name] = std::move(topic.id);
    return ids;
  }

  // The log ends (or starts) of every partition of the topics.
  Result<Positions> offsets(client::OffsetSpec spec, Duration timeout) {
    client::Admin asking(
        {.bootstrap = settings.consumer.bootstrap_servers, .client_id = "weir-sink", .timeout = timeout});
    auto topics = asking.topics(settings.consumer.topics);
    if (!topics) return tl::unexpected(topics.error());
    std::vector<TopicPartition> partitions;
    for (const auto& topic : *topics) {
      for (const auto& partition : topic.partitions) partitions.push_back({topic.name, partition.id});
    }
    Positions out;
    for (auto& [partition, offset] : asking.list_offsets(partitions, spec)) {
      if (!offset) return tl::unexpected(offset.error());
      out[partition] = *offset;
    }
    return out;
  }

  // Waits for a broker, compares its cluster and its topics with the store's, and only then joins the group.
  bool connect() {
    if (!security.empty()) {
      log::warn(
          "sink: over {} it cannot be compared whether this is the cluster, and these the topics, that {} belongs "
          "to; topics are not made",
          security, settings.database.string());
      return open_clients();
    }
    while (!stopping) {
      const auto cluster = admin.cluster();
      if (cluster) {
        if (auto same = core->check_cluster(cluster->id); !same) {
          core->fail_for_good(same.error());
          return false;
        }
        make_missing_topics();
        return core->check_topics() && open_clients();
      }
      if (log_every.allow(mono_now())) log::warn("sink: {}", cluster.error().message);
      std::this_thread::sleep_for(kClusterRetry);
    }
    return false;
  }

  // A consumer that waits for a topic looks for it only now and then.
  void make_missing_topics() {
    std::vector<client::NewTopic> topics;
    if (settings.partitions > 0) {
      for (const std::string& topic : settings.consumer.topics)
        topics.push_back({.name = topic, .partitions = settings.partitions, .configs = {}});
    }
    if (settings.dead_letter_partitions > 0)
      topics.push_back(client::dead_letter_topic(settings.dead_letter_topic, settings.dead_letter_partitions));
    if (const auto made = client::make_missing_topics(admin, topics); !made)
      log::warn("sink: {}", made.error().message);
  }

  bool open_clients() {
    auto opened = Producer::open(dead_letter_producer(settings.consumer));
    if (!opened) return core->fail_for_good(opened.error()), false;
    producer = std::move(*opened);
    auto joined = Consumer::open(settings.consumer, core->hooks());
    if (!joined) return core->fail_for_good(joined.error()), false;
    core->attach(**joined, *producer);
    std::lock_guard lock(clients_mutex);
    consumer = std::move(*joined);
    return true;
  }

  bool joined() const {
    std::lock_guard lock(clients_mutex);
    return consumer != nullptr;
  }

  void run() {
    runtime::name_thread("weir-sink");
    work();
    ended.set_value();
  }

  void work() {
    if (!connect()) return;
    while (!stopping && !core->failed()) core->step(kLookAgain);
    core->stop_polling();
    const MonoTime end = stop_by;
    while (!core->empty() && !core->failed() && mono_now() < end) {
      core->step(Duration::zero());
      if (!core->empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    (void)consumer->flush_commits(left_until(end));
    consumer->close(left_until(end));
    producer->close(left_until(end));
  }

  const SinkSettings settings;
  const std::string security;
  client::Admin admin;  // of the sink's thread
  std::unique_ptr<runtime::FileLock> lock;
  std::unique_ptr<Store> store;
  std::unique_ptr<SinkCore> core;
  std::unique_ptr<Producer> producer;
  mutable std::mutex clients_mutex;  // guards the pointer `consumer`, not what it points to
  std::unique_ptr<Consumer> consumer;
  log::Every log_every{std::chrono::seconds(30)};
  std::atomic<bool> stopping{false};
  std::atomic<MonoTime> stop_by{MonoTime{}};
  Registry::Hook hook;
  std::promise<void> ended;
  std::thread thread;
};

Result<void> check(const SinkSettings& settings) {
  if (auto fine = client::check(settings.consumer); !fine) return fine;
  return client::try_rdkafka_consumer(settings.consumer);
}

Result<std::unique_ptr<Sink>> Sink::open(const SinkSettings& settings) {
  if (auto fine = client::check(settings.consumer); !fine) return tl::unexpected(fine.error());
  auto state = std::make_unique<State>(settings);
  auto lock = runtime::posix_file_system().lock(settings.database.string() + ".lock");
  if (!lock) return tl::unexpected(lock.error());
  state->lock = std::move(*lock);
  auto store = open_sqlite_store(settings.database);
  if (!store) return tl::unexpected(store.error());
  state->store = std::move(*store);
  auto known = state->store->positions();
  if (!known) return tl::unexpected(known.error());
  state->core = std::make_unique<SinkCore>(
      settings, *state->store, std::move(*known), [s = state.get()] { return s->topic_ids(); }, system_clock());
  state->thread = std::thread([s = state.get()] { s->run(); });
  std::unique_ptr<Sink> sink(new Sink);
  sink->state_ = std::move(state);
  return sink;
}

Sink::~Sink() {
  state_->hook.reset();
  stop(Duration::zero());
}

Result<std::int64_t> Sink::drain(Duration deadline) {
  const MonoTime end = mono_now() + deadline;
  auto ends = state_->offsets(client::OffsetSpec::kLatest, std::max<Duration>(deadline, std::chrono::seconds(1)));
  if (!ends) return tl::unexpected(ends.error());
  state_->core->wait_positions(
      [&](const Positions& at) {
        for (const auto& [partition, log_end] : *ends) {
          const auto it = at.find(partition);
          if (it == at.end() ? log_end.value > 0 : it->second < log_end) return false;
        }
        return true;
      },
      end);
  return lag();
}

Result<std::int64_t> Sink::lag() {
  constexpr Duration kTimeout = std::chrono::seconds(5);
  auto ends = state_->offsets(client::OffsetSpec::kLatest, kTimeout);
  if (!ends) return tl::unexpected(ends.error());
  auto starts = state_->offsets(client::OffsetSpec::kEarliest, kTimeout);
  if (!starts) return tl::unexpected(starts.error());
  const Positions at = positions();
  std::int64_t sum = 0;
  for (const auto& [partition, log_end] : *ends) {
    Offset from{0};
    if (const auto start = starts->find(partition); start != starts->end()) from = start->second;
    if (const auto it = at.find(partition); it != at.end()) from = std::max(from, it->second);
    sum += std::max<std::int64_t>(0, log_end - from);
  }
  return sum;
}

void Sink::stop(Duration deadline) {
  if (!state_->thread.joinable()) return;
  state_->stop_by = mono_now() + deadline;
  state_->stopping = true;
  // A broker that does not answer must not hold the end up; before the group is joined there is nothing to bring to an
  // end.
  if (!state_->joined() || state_->ended.get_future().wait_for(deadline) != std::future_status::ready)
    state_->admin.interrupt();
  state_->thread.join();
}

SinkStats Sink::stats() const { return state_->core->stats(); }

ConsumerStats Sink::consumer_stats() const {
  std::lock_guard lock(state_->clients_mutex);
  return state_->consumer ? state_->consumer->stats() : ConsumerStats{};
}

std::vector<SettingInForce> Sink::in_force() const {
  std::lock_guard lock(state_->clients_mutex);
  return state_->consumer ? state_->consumer->in_force() : std::vector<SettingInForce>{};
}

void Sink::expose(Registry& registry) {
  state_->core->expose(registry);
  state_->hook = registry.on_collect([this, &registry] {
    using namespace metrics;
    const SinkStats now = stats();
    registry.counter(kSinkStored).raise_to(now.stored);
    registry.counter(kSinkDuplicates).raise_to(now.duplicates);
    registry.counter(kSinkDeadLettered, {{"reason", "unparseable"}}).raise_to(now.unparseable);
    registry.counter(kSinkDeadLettered, {{"reason", "refused"}}).raise_to(now.dead_lettered - now.unparseable);
    registry.gauge(kSinkInMemory).set(static_cast<double>(now.in_memory));

    const ConsumerStats read = consumer_stats();
    const Labels group = {{"group", state_->settings.consumer.group_id}};
    double held = 0;
    double unfinished = 0;
    for (const auto& [partition, stats] : read.partitions) {
      held += stats.held ? 1 : 0;
      unfinished += static_cast<double>(stats.unfinished);
    }
    registry.counter(kConsumerFetched, group).raise_to(read.fetched);
    registry.gauge(kConsumerHeldPartitions, group).set(held);
    registry.counter(kConsumerHolds, group).raise_to(read.holds);
    registry.gauge(kConsumerUnfinished, group).set(unfinished);
    registry.counter(kConsumerRebalances, group).raise_to(read.rebalances);
    registry.counter(kConsumerSkipped, group).raise_to(read.skipped);
  });
}

std::map<TopicPartition, Offset> Sink::positions() const { return state_->core->positions(); }

}  // namespace weir::sink
