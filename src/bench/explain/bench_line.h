// The output of `weir bench seed`, as words or with --json, as explain reads it: a few figures say what thousands of
// message lines would. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bench/explain/observe.h"

namespace weir::bench {

/// Figures of the run "question", (a), as the bench prints them.
struct BenchFigures {
  std::optional<double> messages, first_ms, last_ms, max_ms, slope_ms_per_1000, arrival_per_s, service_per_s;
  std::optional<double> max_queue, acked_during_loop;
};

/// None when a figure that is needed is missing or cannot be.
std::optional<Observations> observations_of(const BenchFigures& figures);

/// Takes the lines one by one. Owned by one thread.
class BenchReader {
 public:
  /// True when the line is one of the bench's.
  bool feed(std::string_view line);
  /// The run of the last output that was whole.
  const std::optional<Observations>& run() const { return run_; }

 private:
  bool feed_json(std::string_view line);
  bool feed_text(std::string_view line);

  bool in_question_ = false;
  BenchFigures figures_;
  std::optional<Observations> run_;
};

}  // namespace weir::bench
