#include "flow/lag_time.h"

#include <algorithm>

#include "base/assert.h"

namespace weir::flow {

void LagTime::sample(MonoTime now, Offset end) {
  if (!samples_.empty() && end < samples_.back().end) samples_.clear();
  WEIR_ASSERT(samples_.empty() || now >= samples_.back().at);
  // In a flat stretch only its two ends matter.
  const std::size_t n = samples_.size();
  if (n >= 2 && samples_[n - 1].end == end && samples_[n - 2].end == end) {
    samples_.back().at = now;
    return;
  }
  samples_.push_back({now, end});
  if (samples_.size() <= most_) return;
  // Thin the older half: the newest samples decide small lags and stay as they are.
  std::deque<Sample> kept;
  const std::size_t half = samples_.size() / 2;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (i >= half || i % 2 == 0) kept.push_back(samples_[i]);
  }
  samples_ = std::move(kept);
}

std::optional<LagTime::Lag> LagTime::of(MonoTime now, Offset committed) const {
  if (samples_.empty()) return std::nullopt;
  if (committed >= samples_.back().end) return Lag{};
  const auto after = std::upper_bound(samples_.begin(), samples_.end(), committed,
                                      [](Offset offset, const Sample& sample) { return offset < sample.end; });
  if (after == samples_.begin()) return Lag{now - after->at, false};
  const Sample& from = *std::prev(after);
  const double part = double(committed - from.end) / double(after->end - from.end);
  return Lag{now - from.at - Duration(static_cast<std::int64_t>(part * double((after->at - from.at).count()))), true};
}

}  // namespace weir::flow
