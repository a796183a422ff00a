#include "bench/seed/trips.h"

#include <algorithm>
#include <cmath>

#include "metrics/ledger.h"

namespace weir::bench {
namespace {

using metrics::Mark;

// The smallest value that at least the share `p` does not exceed.
double percentile(std::vector<double>& values, double p) {
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void add_to(metrics::Ledger& ledger, const Trip& trip) {
  metrics::StageTimes times;
  times.stamp(Mark::kRead, trip.intended);
  times.stamp(Mark::kQueued, trip.accepted);
  if (trip.handed) times.stamp(Mark::kSent, *trip.handed);
  times.stamp(Mark::kAcked, from_unix_ms(trip.stamp_ms));
  times.stamp(Mark::kFetched, trip.received);
  times.stamp(Mark::kStored, trip.done);
  ledger.add(times);
}

}  // namespace

Observations observe(std::span<const Trip> trips) {
  Observer observer;
  for (std::size_t i = 0; i < trips.size(); ++i) {
    observer.feed(MessageLine{static_cast<std::int64_t>(i) + 1, trips[i].stamp_ms, trips[i].latency_ms()});
  }
  return observer.result();
}

Figures figures_of(std::span<const Trip> trips) {
  Figures out;
  if (trips.empty()) return out;
  std::vector<double> latency, whole;
  latency.reserve(trips.size());
  whole.reserve(trips.size());
  metrics::Ledger ledger;
  for (const Trip& trip : trips) {
    latency.push_back(trip.latency_ms());
    whole.push_back(to_ms(trip.received - trip.intended));
    out.blocked_ms += to_ms(trip.accepted - trip.intended);
    add_to(ledger, trip);
  }
  const Observations seen = observe(trips);
  out.messages = static_cast<std::int64_t>(trips.size());
  out.first_ms = latency.front();
  out.last_ms = latency.back();
  out.max_ms = seen.max_ms;
  out.p50_ms = percentile(latency, 0.5);
  out.p99_ms = percentile(latency, 0.99);
  out.slope_ms_per_1000 = seen.slope_ms_per_1000;
  out.arrival_per_s = seen.arrival_per_s;
  out.service_per_s = seen.service_per_s;
  out.intended_to_received_p99_ms = percentile(whole, 0.99);
  out.seconds = to_seconds(trips.back().received - trips.front().received);
  for (const Mark mark : {Mark::kQueued, Mark::kSent, Mark::kAcked, Mark::kFetched, Mark::kStored}) {
    const LatencySummary stage = ledger.stage(mark);
    if (stage.count > 0) out.stages.emplace_back(metrics::to_string(mark), stage);
  }
  return out;
}

}  // namespace weir::bench
