#include "bench/seed/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "client/admin.h"
#include "weir/producer.h"

namespace weir::bench {
namespace {

WallTime wall_now() { return system_clock().now().wall; }

// Runs receive() beside the caller's sending; join() gives its outcome.
class Receiving {
 public:
  Receiving(Receiver& receiver, std::span<Trip> trips, Duration work, std::function<void(Offset)> on_progress = {})
      : thread_([this, &receiver, trips, work, on_progress = std::move(on_progress)] {
          outcome_ = receiver.receive(trips, expected_, work, on_progress);
          ended_ = true;
          receiver.close();
        }) {}
  ~Receiving() {
    if (thread_.joinable()) join(0);
  }
  bool ended() const { return ended_; }
  Result<void> join(std::int64_t expected) {
    expected_.store(expected, std::memory_order_release);
    thread_.join();
    return outcome_;
  }

 private:
  std::atomic<std::int64_t> expected_{-1};
  std::atomic<bool> ended_{false};
  Result<void> outcome_;
  std::thread thread_;
};

Figures receive_and_sum(Receiving& receiving, std::span<const Trip> trips, Result<void>& outcome) {
  outcome = receiving.join(static_cast<std::int64_t>(trips.size()));
  return outcome ? figures_of(trips) : Figures{};
}

}  // namespace

Result<void> prepare_topic(const Place& place) {
  client::Admin admin({.bootstrap = place.bootstrap, .client_id = "weir-bench", .timeout = std::chrono::seconds(30)});
  client::NewTopic topic{.name = place.topic,
                         .partitions = 1,
                         .replication_factor = 1,
                         .configs = {{"message.timestamp.type", "LogAppendTime"}}};
  Result<void> made = admin.create_topic(topic);
  if (made || made.error().kind != ErrorKind::kExists) return made;

  auto topics = admin.topics({place.topic});
  if (!topics) return tl::unexpected(topics.error());
  if (topics->size() == 1 && topics->front().partitions.size() != 1) {
    return fail(ErrorKind::kInvalid,
                fmt::format("{}: the topic has {} partitions and the question has one; delete it or name "
                            "another broker",
                            place.topic, topics->front().partitions.size()));
  }
  return {};
}

Result<Burst> run_burst(const Place& place, std::span<const std::string> tweets, std::size_t steps, Duration work) {
  Result<Receiver> receiver = Receiver::open(place);
  if (!receiver) return tl::unexpected(receiver.error());
  std::vector<Trip> trips(tweets.size() * steps);
  Receiving receiving(*receiver, trips, work);

  Burst out;
  std::int64_t reports = 0;
  std::string refused;
  auto producer =
      client::RawProducer::open({{"bootstrap.servers", place.bootstrap}}, [&](std::string_view error, Offset) {
        ++reports;
        if (!error.empty()) refused = error;
      });
  if (!producer) return tl::unexpected(producer.error());
  client::RawProducer& p = **producer;

  Observer queue;
  std::size_t sent = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    for (const std::string& tweet : tweets) {
      const auto length = static_cast<std::int64_t>(p.queue_length());
      queue.feed(QueueLine{length});
      trips[sent].intended = wall_now();
      Result<bool> taken = p.produce(place.topic, tweet);
      if (taken && !*taken) {
        queue.feed(QueueFullLine{length});
        p.flush(std::chrono::minutes(5));
        taken = p.produce(place.topic, tweet);
      }
      if (!taken || !*taken) {
        return fail(ErrorKind::kUnavailable,
                    taken ? "the producer's queue stays full: the broker does not answer" : taken.error().message);
      }
      trips[sent++].accepted = wall_now();
      p.poll(Duration::zero());
    }
  }
  out.acked_during_loop = reports;
  const std::size_t left = p.flush(std::chrono::minutes(5));
  if (left > 0 || !refused.empty()) {
    return fail(ErrorKind::kUnavailable,
                refused.empty() ? fmt::format("{} records were not acknowledged", left) : refused);
  }
  Result<void> received;
  out.figures = receive_and_sum(receiving, trips, received);
  if (!received) return tl::unexpected(received.error());
  out.seen = observe(trips);
  const Observations queued = queue.result();
  out.max_queue = queued.max_queue;
  out.seen.queue_lines = queued.queue_lines;
  out.seen.queue_full_lines = queued.queue_full_lines;
  out.seen.queue_growth_per_record = queued.queue_growth_per_record;
  out.seen.queue_steps = queued.queue_steps;
  out.seen.queue_rise = queued.queue_rise;
  out.seen.queue_noise = queued.queue_noise;
  out.seen.max_queue = queued.max_queue;
  return out;
}

Result<Guarded> run_guarded(const Place& place, std::span<const std::string> tweets, const GuardedSettings& settings) {
  Result<Receiver> receiver = Receiver::open(place);
  if (!receiver) return tl::unexpected(receiver.error());

  // Room for twice the capacity, so that a faster run is not cut short. Outlives the producer, whose callbacks write
  // here.
  const double seconds = to_seconds(settings.warm_up + settings.measure);
  std::vector<Trip> trips(static_cast<std::size_t>(2 * seconds * settings.capacity_per_s) + 1000);
  std::atomic<std::int64_t> acked{0};

  ProducerSettings producer_settings;
  producer_settings.bootstrap_servers = place.bootstrap;
  producer_settings.linger = std::chrono::milliseconds(1);
  producer_settings.window = true;
  producer_settings.lag_target = settings.target;
  // What waits in front of the window is bounded in time too: room for two windows, then send() blocks.
  producer_settings.buffer_records =
      std::max<std::size_t>(1000, static_cast<std::size_t>(2 * to_seconds(settings.target) * settings.capacity_per_s));
  Result<std::unique_ptr<Producer>> opened = Producer::open(producer_settings);
  if (!opened) return tl::unexpected(opened.error());
  Producer& producer = **opened;

  const TopicPartition partition{place.topic, PartitionId(0)};
  Receiving receiving(*receiver, trips, settings.work, [&](Offset next) { producer.consumed(partition, next); });

  const Now start = system_clock().now();
  const MonoTime end = start.mono + settings.warm_up + settings.measure;
  std::size_t sent = 0;
  Guarded out;
  while (sent < trips.size() && !receiving.ended()) {
    const Now now = system_clock().now();
    if (now.mono >= end) break;
    Trip& trip = trips[sent];
    trip.intended = now.wall;
    Record record{.topic = place.topic, .partition = PartitionId(0), .value = tweets[sent % tweets.size()]};
    const SendResult result = producer.send(std::move(record), [&trip, &acked, start](Delivery& delivery) {
      trip.handed = start.wall + (delivery.handed_at - start.mono);
      if (delivery.status == Delivery::Status::kAcked) ++acked;
    });
    if (!result.accepted()) {
      return fail(ErrorKind::kUnavailable, fmt::format("send: {} {}", to_string(result.outcome), result.reason));
    }
    trip.accepted = wall_now();
    if (++sent % 64 == 0) {
      const ProducerStats stats = producer.stats();
      out.max_queue = std::max(out.max_queue, static_cast<std::int64_t>(stats.waiting + stats.in_flight));
      out.window_records = stats.window_records.value_or(out.window_records);
    }
  }
  out.acked_during_loop = acked;
  const std::size_t left = producer.close(std::chrono::seconds(30));
  Result<void> received = receiving.join(static_cast<std::int64_t>(sent));
  trips.resize(sent);
  if (!received) return tl::unexpected(received.error());
  if (left > 0 || acked != static_cast<std::int64_t>(sent)) {
    return fail(ErrorKind::kUnavailable,
                fmt::format("{} of {} records were not acknowledged", static_cast<std::int64_t>(sent) - acked, sent));
  }

  const auto warm = std::find_if(trips.begin(), trips.end(),
                                 [&](const Trip& trip) { return trip.received >= start.wall + settings.warm_up; });
  const auto warm_count = static_cast<std::size_t>(warm - trips.begin());
  out.warm_up = figures_of(std::span(trips).first(warm_count));
  out.figures = figures_of(std::span(trips).subspan(warm_count));
  if (settings.capacity_per_s > 0) out.capacity_used = out.figures.service_per_s.value_or(0) / settings.capacity_per_s;
  return out;
}

}  // namespace weir::bench
