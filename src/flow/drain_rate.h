// Drain rate: how fast the far side can work, measured only while it has work.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "weir/types.h"

namespace weir::flow {

/// Feed it the consumer's progress; it divides time into periods and gives the rate of the busy ones. A period in which
/// the consumer ran dry says nothing about what it could do and is left out, except that it was at least that fast. Two
/// answers: peak(), the best of the last busy periods, for a window (an average would let the window talk itself down:
/// less admitted, less drained, less admitted); and mean(), smoothed, for the lag law (a peak would lift its lag by the
/// noise). Owned by one loop.
class DrainRate {
 public:
  struct Settings {
    /// Length of a period. Reports come in steps, so a period should hold five of them or more.
    Duration period = std::chrono::seconds(1);
    /// Weight of the newest busy period in mean(), above 0 and at most 1.
    double smoothing = 0.2;
  };

  explicit DrainRate(Settings settings) : settings_(settings) {}

  /// `consumed`: records consumed so far, never falling. `backlog`: records it still has after that.
  void update(MonoTime now, std::int64_t consumed, std::int64_t backlog);
  /// From the next period on.
  void set_period(Duration period) { settings_.period = period; }

  /// Records a second; none before anything was measured.
  std::optional<double> peak() const;
  std::optional<double> mean() const { return mean_; }
  /// True once a busy period was seen: before that, peak() is only a lower bound.
  bool busy_seen() const { return busy_count_ > 0; }

 private:
  static constexpr std::size_t kPeriods = 4;

  void close_period(double rate, bool busy);

  Settings settings_;
  bool started_ = false;
  MonoTime began_{};
  std::int64_t began_consumed_ = 0;
  bool busy_ = false;  // since the period began
  std::array<double, kPeriods> busy_rates_{};
  std::size_t busy_count_ = 0;  // ever
  double lower_bound_ = 0;
  std::optional<double> mean_;
};

}  // namespace weir::flow
