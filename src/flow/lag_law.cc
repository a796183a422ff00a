#include "flow/lag_law.h"

#include <algorithm>
#include <cmath>

namespace weir::flow {

std::string_view to_string(LagLaw::Phase phase) {
  switch (phase) {
    case LagLaw::Phase::kFree: return "free";
    case LagLaw::Phase::kHolding: return "holding";
    case LagLaw::Phase::kReleasing: return "releasing";
    case LagLaw::Phase::kBlind: return "blind";
  }
  return "?";
}

std::optional<double> LagLaw::update(std::optional<Duration> lag, std::optional<double> drain,
                                     std::optional<std::int64_t> records) {
  if (drain) drain_ = drain;
  const double target = to_seconds(settings_.target);
  lag_ = lag;
  if (lag && records && drain_) lag_ = std::max(*lag, from_seconds(double(*records) / std::max(*drain_, 1.0)));
  const bool under_half = lag_ && to_seconds(*lag_) < target / 2;
  if (!under_half && (!lag_ || !drain_)) {
    if (!limit_) return limit_;
    if (++blind_periods_ > settings_.patience) {
      release();
    } else {
      phase_ = Phase::kBlind;
    }
    return limit_;
  }
  blind_periods_ = 0;
  if (under_half) {
    if (limit_) release();
    return limit_;
  }
  limit_ = std::max(settings_.floor, *drain_ * std::pow(0.5, (to_seconds(*lag_) - target) / target));
  phase_ = Phase::kHolding;
  return limit_;
}

void LagLaw::release() {
  phase_ = Phase::kReleasing;
  limit_ = *limit_ * settings_.release_step;
  if (*limit_ <= settings_.free_above * drain_.value_or(0)) return;
  limit_.reset();
  phase_ = Phase::kFree;
}

}  // namespace weir::flow
