#include "bench/seed/receiver.h"

#include <fmt/format.h>

#include <random>

#include "base/clock.h"

namespace weir::bench {
namespace {

constexpr Duration kNoMessage = std::chrono::seconds(30);

void spin_until(MonoTime end) {
  while (system_clock().now().mono < end) {
  }
}

Result<void> send_marker(const Place& place, const std::string& marker, Duration timeout) {
  std::string refused;
  auto producer = client::RawProducer::open({{"bootstrap.servers", place.bootstrap}},
                                            [&](std::string_view error, Offset) { refused = error; });
  if (!producer) return tl::unexpected(producer.error());
  if (auto taken = (*producer)->produce(place.topic, marker); !taken) return tl::unexpected(taken.error());
  if ((*producer)->flush(timeout) > 0) {
    return fail(ErrorKind::kUnavailable, place.bootstrap + ": no acknowledgement; is a broker listening there?");
  }
  if (!refused.empty()) return fail(ErrorKind::kUnavailable, fmt::format("{}: {}", place.topic, refused));
  return {};
}

}  // namespace

Result<Receiver> Receiver::open(const Place& place, Duration timeout) {
  const MonoTime deadline = system_clock().now().mono + timeout;
  auto consumer = client::RawConsumer::open({{"bootstrap.servers", place.bootstrap},
                                             {"group.id", place.group},
                                             {"client.id", "client-1"},
                                             {"enable.auto.commit", "true"},
                                             {"session.timeout.ms", "6000"},
                                             {"auto.offset.reset", "smallest"}},
                                            {place.topic});
  if (!consumer) return tl::unexpected(consumer.error());
  const std::string marker = fmt::format("weir bench marker {:016x}", std::random_device{}() * 0x9e3779b97f4a7c15ULL);
  if (auto sent = send_marker(place, marker, timeout); !sent) return tl::unexpected(sent.error());
  while (system_clock().now().mono < deadline) {
    auto message = (*consumer)->poll(std::chrono::milliseconds(100));
    if (!message) return tl::unexpected(message.error());
    if (*message && (*message)->value == marker) return Receiver(std::move(*consumer), (*message)->offset + 1);
  }
  return fail(ErrorKind::kTimeout, fmt::format("{}: the group {} did not reach the end of {} within {:.0f} s",
                                               place.bootstrap, place.group, place.topic, to_seconds(timeout)));
}

Result<void> Receiver::receive(std::span<Trip> trips, const std::atomic<std::int64_t>& expected, Duration work,
                               const std::function<void(Offset)>& on_progress) {
  std::size_t count = 0;
  MonoTime last_message = system_clock().now().mono;
  MonoTime last_progress{};
  const auto tell = [&](MonoTime now) {
    if (!on_progress || now - last_progress < kProgressEvery) return;
    last_progress = now;
    on_progress(next_);
  };
  // Short waits only where somebody needs to hear of the progress.
  const Duration wait = on_progress ? 2 * kProgressEvery : Duration(std::chrono::milliseconds(100));
  while (count < trips.size()) {
    const std::int64_t until = expected.load(std::memory_order_acquire);
    if (until >= 0 && count >= static_cast<std::size_t>(until)) return {};
    auto message = consumer_->poll(wait);
    const Now now = system_clock().now();
    if (!message) return tl::unexpected(message.error());
    if (!*message) {
      if (now.mono - last_message > kNoMessage) {
        return fail(ErrorKind::kTimeout,
                    fmt::format("message {} did not come within {:.0f} s", count + 1, to_seconds(kNoMessage)));
      }
      tell(now.mono);
      continue;
    }
    if (!(*message)->log_append_time) {
      return fail(ErrorKind::kInvalid,
                  "the topic does not stamp records at append: set message.timestamp.type=LogAppendTime");
    }
    last_message = now.mono;
    Trip& trip = trips[count++];
    trip.stamp_ms = (*message)->timestamp_ms;
    trip.received = now.wall;
    if (work > Duration::zero()) spin_until(now.mono + work);
    const Now after = system_clock().now();
    trip.done = after.wall;
    next_ = (*message)->offset + 1;
    tell(after.mono);
  }
  return {};
}

void Receiver::close() { consumer_->close(std::chrono::seconds(10)); }

}  // namespace weir::bench
