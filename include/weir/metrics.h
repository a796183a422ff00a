// Metrics: counters, gauges and latency histograms, and their text form as Prometheus reads it.
//
// Register a metric once and keep the reference: it stays valid as long as the Registry lives (or until the series is
// removed). Updating is one atomic operation (a histogram: a short lock). Every function may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/types.h"

namespace weir {

/// Label names and values in the order they are shown.
/// Any bytes may be a value; they are escaped in text(). A name is [a-zA-Z_][a-zA-Z0-9_]*, which is not checked.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// As Prometheus has them; a histogram counts durations.
enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

/// A metric's identity. weir's own are constants in metrics/names.h; an application may define more.
struct Metric {
  /// As Prometheus wants it: [a-z_]+, counters end in _total, a unit comes last (_seconds, _bytes).
  std::string_view name;
  MetricType type;
  std::string_view help;
};

/// Only grows. Wraps at 2^64.
class Counter {
 public:
  /// Counts `n` more.
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  /// For a count kept elsewhere: raises this one to `total`; a lower total is ignored.
  void raise_to(std::uint64_t total);
  /// As counted so far, by all threads.
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Goes up and down.
class Gauge {
 public:
  /// Any number, in the unit the metric's name ends with; NaN means that there is none now.
  void set(double v) { value_.store(v, std::memory_order_relaxed); }
  /// Adds `v`, which may be negative.
  void add(double v) { value_.fetch_add(v, std::memory_order_relaxed); }
  /// The number set last, plus what was added since.
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// What a latency distribution looked like. `count` 0: everything is 0.
struct LatencySummary {
  std::uint64_t count = 0;
  Duration p50{};
  Duration p99{};
  Duration max{};
  Duration mean{};
};

/// Durations, exposed as a Prometheus histogram in seconds. Kept in log-linear buckets (the layout of HdrHistogram):
/// percentiles are at most 2 % above the true ones, up to 19 hours. 16 KB each.
class LatencyMetric {
 public:
  LatencyMetric();
  ~LatencyMetric();
  /// Counts one duration; below zero counts as zero, above 19 hours in the last bucket.
  void record(Duration d);
  /// Of everything recorded since the metric was made.
  LatencySummary summary() const;

 private:
  friend class Registry;
  struct State;
  std::unique_ptr<State> state_;
};

/// All metrics of a process (or of one part of it: registries are independent). Any thread.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// The series of `metric` with these labels; made on first use. Asking for a name with another type is a bug of the
  /// caller's and ends the program.
  Counter& counter(const Metric& metric, const Labels& labels = {});
  Gauge& gauge(const Metric& metric, const Labels& labels = {});
  LatencyMetric& latency(const Metric& metric, const Labels& labels = {});

  /// Ends a series: a deleted topic must not be reported for ever. References to it die: whoever removes one must know
  /// that nobody updates it any more. Nothing happens when there is none.
  void remove(const Metric& metric, const Labels& labels);

  /// Runs before every text(), on its thread: for values that are read rather than counted (queue lengths). `hook` may
  /// set metrics; it must not call text() or on_collect(). Drop the returned handle to end it; after that it is not
  /// running.
  using Hook = std::shared_ptr<void>;
  [[nodiscard]] Hook on_collect(std::function<void()> hook);

  /// Prometheus text exposition 0.0.4 (content type `text/plain; version=0.0.4`): families by name, series by labels.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir
