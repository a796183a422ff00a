// Latency histogram: log-linear buckets, bounded memory, mergeable.
#pragma once

#include <cstdint>
#include <vector>

#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::metrics {

/// Counts durations in microseconds: exact up to 128 us, then 64 buckets for each power of two, so a percentile is at
/// most 1/64 (1.6 %) above the true one; longest 19 hours (longer counts as that). 16 KB whatever is recorded. (The
/// layout of HdrHistogram.) Value type; owned by one thread.
class LatencyHistogram {
 public:
  /// Below zero counts as zero.
  void record(Duration d, std::uint64_t times = 1);
  void merge(const LatencyHistogram& other);
  void clear() { *this = {}; }

  std::uint64_t count() const { return count_; }
  /// Exact.
  Duration max() const { return max_; }
  /// In seconds: of many long waits it would not fit a Duration.
  double sum() const { return sum_; }
  /// `p` from 0 to 1: the smallest time that this share of the records did not exceed. Zero when empty.
  Duration percentile(double p) const;
  /// How many took at most `d` (to the resolution of the buckets).
  std::uint64_t at_most(Duration d) const;
  LatencySummary summary() const;

 private:
  std::vector<std::uint64_t> buckets_;  // made by the first record
  std::uint64_t count_ = 0;
  Duration max_{};
  double sum_ = 0;
};

}  // namespace weir::metrics
