#include "client/producer_metrics.h"

#include <memory>

#include "base/clock.h"
#include "metrics/names.h"

namespace weir::client {

namespace {

/// What must be remembered from one collection to the next.
struct Shown {
  std::uint64_t acked = 0;
  MonoTime at{};
  LimitedBy limit = LimitedBy::kNothing;
};

void collect(const ProducerStats& stats, const Labels& client, Shown& shown, Registry& registry) {
  using namespace metrics;
  const auto with = [&](const char* name, std::string_view value) {
    Labels labels = client;
    labels.emplace_back(name, value);
    return labels;
  };
  const MonoTime now = system_clock().now().mono;
  if (const double elapsed = to_seconds(now - shown.at); elapsed > 0) {
    registry.gauge(kProducerRecordSendRate, client).set(double(stats.acked - shown.acked) / elapsed);
  }
  shown.acked = stats.acked;
  shown.at = now;

  registry.counter(kProducerAccepted, client).raise_to(stats.accepted);
  registry.counter(kProducerAcked, client).raise_to(stats.acked);
  registry.counter(kProducerRejected, client).raise_to(stats.rejected);
  registry.counter(kProducerRefused, with("reason", "full")).raise_to(stats.refused_full);
  registry.counter(kProducerRefused, with("reason", "rejected")).raise_to(stats.refused_rejected);
  for (std::size_t i = 0; i < kLanes; ++i) {
    registry.gauge(kProducerWaiting, with("lane", to_string(static_cast<Lane>(i))))
        .set(double(stats.waiting_by_lane[i]));
  }
  registry.gauge(kProducerInFlight, client).set(double(stats.in_flight));
  registry.gauge(kProducerUnreported, client).set(double(stats.unreported));
  registry.gauge(kProducerBufferBytes, client).set(double(stats.buffer_bytes));
  registry.gauge(kProducerBufferPeakBytes, client).set(double(stats.peak_buffer_bytes));
  registry.gauge(kProducerBlockedSeconds, client).set(to_seconds(stats.blocked));
  registry.gauge(kProducerBrokerThrottleSeconds, client).set(to_seconds(stats.broker_throttle));
  if (stats.window_records) {
    registry.gauge(kProducerWindowRecords, client).set(double(*stats.window_records));
    registry.gauge(kProducerUnconsumedRecords, client).set(double(stats.unconsumed));
  }
  for (const auto state :
       {ProducerState::kOpen, ProducerState::kBlocked, ProducerState::kDraining, ProducerState::kClosed}) {
    registry.gauge(kProducerState, with("state", to_string(state))).set(stats.state == state ? 1 : 0);
  }
  for (std::size_t i = 1; i < kLimitedByCount; ++i) {
    registry.gauge(kLimitedSeconds, with("reason", to_string(static_cast<LimitedBy>(i))))
        .set(to_seconds(stats.limited_for[i]));
  }
  if (shown.limit != stats.limit.limited_by && shown.limit != LimitedBy::kNothing) {
    registry.remove(kLimit, with("reason", to_string(shown.limit)));
  }
  shown.limit = stats.limit.limited_by;
  if (shown.limit != LimitedBy::kNothing)
    registry.gauge(kLimit, with("reason", to_string(shown.limit))).set(stats.limit.limit);
}

}  // namespace

Registry::Hook expose(const Producer& producer, const std::string& client_id, Registry& registry) {
  auto shown = std::make_shared<Shown>();
  shown->acked = producer.stats().acked;
  shown->at = system_clock().now().mono;
  return registry.on_collect([&producer, client = Labels{{"client_id", client_id}}, shown, &registry] {
    collect(producer.stats(), client, *shown, registry);
  });
}

}  // namespace weir::client
