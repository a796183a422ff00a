#include "flow/adaptive_window.h"

#include <algorithm>

#include "base/assert.h"

namespace weir::flow {

namespace {
constexpr double kComfort = 0.8;       // of the target: between this and the target nothing changes
constexpr double kSmallestCut = 0.95;  // a little over the target still shrinks by this much
constexpr double kLargestCut = 0.5;
constexpr double kLargestStep = 0.25;  // growth a round once doubling is over
}  // namespace

AdaptiveWindow::AdaptiveWindow(Settings settings) : settings_(settings), limit_(settings.start) {
  WEIR_ASSERT(settings.target > Duration::zero() && settings.floor > 0 && settings.floor <= settings.ceiling);
  limit_ = std::clamp(limit_, settings_.floor, settings_.ceiling);
}

void AdaptiveWindow::sent(Bytes bytes) {
  in_flight_ += bytes;
  most_in_flight_ = std::max(most_in_flight_, in_flight_);
}

void AdaptiveWindow::dropped(Bytes bytes) {
  WEIR_ASSERT(in_flight_ >= bytes);
  in_flight_ -= bytes;
}

void AdaptiveWindow::acked(MonoTime now, Bytes bytes, Duration delay) {
  dropped(bytes);
  if (delay_count_ == 0 && round_began_ == MonoTime{}) round_began_ = now;
  delay_sum_ += delay;
  ++delay_count_;
  // A round lasts at least as long as its acknowledgements took: then they belong to the limit decided last.
  const Duration mean = delay_sum_ / delay_count_;
  if (now - round_began_ < std::max(mean, settings_.target / 4)) return;
  decide(mean);
  round_began_ = now;
  delay_sum_ = Duration::zero();
  delay_count_ = 0;
  most_in_flight_ = in_flight_;
}

void AdaptiveWindow::decide(Duration mean) {
  delay_ = mean;
  const double ratio = to_seconds(settings_.target) / std::max(to_seconds(mean), 1e-6);
  double limit = static_cast<double>(limit_);
  if (ratio < 1) {
    doubling_ = false;
    limit *= std::clamp(ratio, kLargestCut, kSmallestCut);
  } else if (ratio * kComfort > 1 && most_in_flight_ * 2 >= limit_) {
    limit *= doubling_ ? 2.0 : 1 + kLargestStep * std::min(1.0, ratio * kComfort - 1);
  }
  limit_ = std::clamp(static_cast<Bytes>(limit), settings_.floor, settings_.ceiling);
}

}  // namespace weir::flow
