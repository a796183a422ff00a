#include "broker/quota_rate.h"

#include <algorithm>

namespace weir::broker {

using std::chrono::milliseconds;

void TrailingRate::record(MonoTime now, double amount) {
  forget(now);
  if (samples_.empty() || now - samples_.back().start >= window_) samples_.push_back({now, now, 0});
  samples_.back().last = now;
  samples_.back().amount += amount;
}

void TrailingRate::forget(MonoTime now) {
  while (!samples_.empty() && obsolete(samples_.front(), now)) samples_.pop_front();
}

Duration TrailingRate::span(MonoTime now) const {
  Duration span = samples_.empty() ? Duration{0} : now - samples_.front().start;
  const auto full_windows = span / window_;
  if (full_windows < windows_ - 1) span += (windows_ - 1 - full_windows) * window_;
  return std::max<Duration>(span, milliseconds(1));
}

double TrailingRate::per_second(MonoTime now) {
  forget(now);
  double sum = 0;
  for (const Sample& sample : samples_) sum += sample.amount;
  return sum / to_seconds(span(now));
}

Duration TrailingRate::delay(MonoTime now, double limit) {
  const double observed = per_second(now);
  if (observed <= limit) return {};
  const double ms = (observed - limit) / limit * to_ms(span(now));
  // A year is for ever, and keeps the sum below from overflowing.
  constexpr double kLongest = 365.0 * 24 * 3600 * 1000;
  return milliseconds(static_cast<std::int64_t>(std::min(ms, kLongest) + 0.5));
}

}  // namespace weir::broker
