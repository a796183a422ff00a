#include "flow/lanes.h"

#include <algorithm>

namespace weir::flow {

LaneSchedule::LaneSchedule(LaneWeights weights) {
  for (std::size_t i = 0; i < kLanes; ++i) {
    WEIR_ASSERT(weights[i] >= 1);
    stride_[i] = 1.0 / weights[i];
  }
}

std::optional<Lane> LaneSchedule::next(const std::array<bool, kLanes>& waiting) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (waiting[i] && (!best || pass_[i] < pass_[*best])) best = i;
  }
  if (!best) return std::nullopt;
  return static_cast<Lane>(*best);
}

void LaneSchedule::served(Lane lane) {
  auto& pass = pass_[static_cast<std::size_t>(lane)];
  present_ = std::max(present_, pass);
  pass += stride_[static_cast<std::size_t>(lane)];
}

void LaneSchedule::woke(Lane lane) {
  auto& pass = pass_[static_cast<std::size_t>(lane)];
  pass = std::max(pass, present_);
}

}  // namespace weir::flow
