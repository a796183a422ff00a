// How fast something went lately, by Kafka's rule, and how long to wait when that was too fast.
//
// Algorithm: Kafka's client quotas (KIP-13, KIP-219). Time is cut into samples of one window each; the rate is the sum
// of the samples of the trailing windows over the time they span, which counts as at least all but one of the windows.
// So a fresh client may burst about ten seconds' worth at once, and an amount is remembered for about eleven seconds.
// Source: the documented behaviour of quota.window.num and quota.window.size.seconds, and measured figures.
#pragma once

#include <deque>

#include "weir/types.h"

namespace weir::broker {

/// Owned by one thread. Time never goes back between calls.
class TrailingRate {
 public:
  /// `windows`: how many are remembered, at least 1 (quota.window.num); `window`: how long each is.
  TrailingRate(int windows, Duration window) : windows_(windows), window_(window) {}

  /// Counts `amount` now; a negative one takes back what was counted too early.
  void record(MonoTime now, double amount);
  /// Amount per second over the trailing windows.
  double per_second(MonoTime now);
  /// How long to wait, from `now`, until the rate is down to `limit` per second if nothing more is counted: the excess
  /// over the limit, in units of the limit, times the time the rate spans. To whole milliseconds; zero within the
  /// limit. There is no upper bound. `limit` is above zero.
  Duration delay(MonoTime now, double limit);
  /// Nothing is remembered any more: as good as new.
  bool idle(MonoTime now) const { return samples_.empty() || obsolete(samples_.back(), now); }

 private:
  struct Sample {
    MonoTime start;
    MonoTime last;
    double amount = 0;
  };
  // A sample that began before the windows but reaches into them still counts.
  bool obsolete(const Sample& sample, MonoTime now) const { return now - sample.last >= windows_ * window_; }
  void forget(MonoTime now);
  Duration span(MonoTime now) const;

  int windows_;
  Duration window_;
  std::deque<Sample> samples_;  // oldest first
};

}  // namespace weir::broker
