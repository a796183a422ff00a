#include "metrics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::metrics {

namespace {
constexpr std::uint64_t kExact = 128;  // values below this have a bucket each
constexpr std::uint64_t kSteps = 64;   // buckets per power of two above
constexpr int kPowers = 30;
constexpr std::uint64_t kBuckets = kExact + kPowers * kSteps;
constexpr std::uint64_t kLargest = (kExact << kPowers) - 1;

std::uint64_t bucket_of(std::uint64_t us) {
  us = std::min(us, kLargest);
  if (us < kExact) return us;
  const int shift = std::bit_width(us) - 7;
  return kExact + std::uint64_t(shift - 1) * kSteps + ((us >> shift) - kSteps);
}

/// The largest value that falls into the bucket.
std::uint64_t top_of(std::uint64_t bucket) {
  if (bucket < kExact) return bucket;
  const auto shift = (bucket - kExact) / kSteps + 1;
  return (((bucket - kExact) % kSteps + kSteps + 1) << shift) - 1;
}

std::uint64_t to_us(Duration d) {
  return std::uint64_t(std::max<std::int64_t>(0, std::chrono::floor<std::chrono::microseconds>(d).count()));
}
}  // namespace

void LatencyHistogram::record(Duration d, std::uint64_t times) {
  if (times == 0) return;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  d = std::max(d, Duration::zero());
  buckets_[bucket_of(to_us(d))] += times;
  count_ += times;
  max_ = std::max(max_, d);
  sum_ += to_seconds(d) * double(times);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

Duration LatencyHistogram::percentile(double p) const {
  if (count_ == 0) return Duration::zero();
  const auto wanted = std::max<std::uint64_t>(1, std::uint64_t(std::ceil(std::clamp(p, 0.0, 1.0) * double(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min<Duration>(std::chrono::microseconds(top_of(i)), max_);
  }
  return max_;
}

std::uint64_t LatencyHistogram::at_most(Duration d) const {
  if (count_ == 0 || d < Duration::zero()) return 0;
  if (d >= max_) return count_;
  std::uint64_t seen = 0;
  for (std::uint64_t i = 0, last = bucket_of(to_us(d)); i <= last; ++i) seen += buckets_[i];
  return seen;
}

LatencySummary LatencyHistogram::summary() const {
  if (count_ == 0) return {};
  return {count_, percentile(0.5), percentile(0.99), max_, from_seconds(sum_ / double(count_))};
}

}  // namespace weir::metrics
