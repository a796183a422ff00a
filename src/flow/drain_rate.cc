#include "flow/drain_rate.h"

#include <algorithm>

namespace weir::flow {

void DrainRate::update(MonoTime now, std::int64_t consumed, std::int64_t backlog) {
  if (!started_) {
    started_ = true;
    began_ = now;
    began_consumed_ = consumed;
    busy_ = backlog > 0;
    return;
  }
  busy_ = busy_ && backlog > 0;
  const Duration elapsed = now - began_;
  if (elapsed < settings_.period || elapsed <= Duration::zero()) return;
  close_period(static_cast<double>(consumed - began_consumed_) / to_seconds(elapsed), busy_);
  began_ = now;
  began_consumed_ = consumed;
  busy_ = backlog > 0;
}

void DrainRate::close_period(double rate, bool busy) {
  if (!busy) {
    // It may have waited for work: at least this fast. Once busy periods are known, only a higher figure is news.
    lower_bound_ = std::max(lower_bound_, rate);
    return;
  }
  busy_rates_[busy_count_++ % kPeriods] = rate;
  lower_bound_ = 0;
  mean_ = mean_ ? *mean_ + settings_.smoothing * (rate - *mean_) : rate;
}

std::optional<double> DrainRate::peak() const {
  double best = lower_bound_;
  for (std::size_t i = 0; i < std::min(busy_count_, kPeriods); ++i) best = std::max(best, busy_rates_[i]);
  if (best <= 0 && busy_count_ == 0) return std::nullopt;
  return best;
}

}  // namespace weir::flow
