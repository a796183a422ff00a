// `weir explain` without files: text in, a verdict out, as words or as one line of JSON.
#pragma once

#include <string>
#include <string_view>

#include "bench/explain/bench_line.h"
#include "bench/explain/diagnose.h"
#include "weir/types.h"

namespace weir::bench {

/// A stream of text on its way to a verdict. Memory does not depend on the length of the input. Owned by one thread.
class Explainer {
 public:
  Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  void feed(std::string_view chunk) { splitter_.feed(chunk); }
  void end_of_input();
  /// Fails (kInvalid) when not one line was recognised.
  Result<Observations> result() const;

 private:
  Observer observer_;
  BenchReader bench_;
  LineSplitter splitter_;
};

/// Paragraphs for people.
std::string to_text(const Observations& seen, const Diagnosis& diagnosis);
/// One line: {samples, arrival_per_s, service_per_s, slope_ms_per_1000, queue_growth_per_record, bottleneck,
/// confidence, advice}.
std::string to_json(const Observations& seen, const Diagnosis& diagnosis);

}  // namespace weir::bench
