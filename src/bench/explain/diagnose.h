// Where the queue is, how sure that is, and what to do: from observations to plain words. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/explain/observe.h"

namespace weir::bench {

/// Who holds the records up. kNone: nobody. kUnknown: the lines cannot tell.
enum class Bottleneck { kProducer, kBroker, kConsumer, kNone, kUnknown };
std::string_view name(Bottleneck b);

/// What the latency does over the run. kUnknown: fewer than two messages of one run.
enum class Trend { kUnknown, kFlat, kGrowing, kFalling };

/// One reason for (or against) trusting the verdict, 0 to 1.
struct Factor {
  double value = 0;
  std::string why;
};

struct Diagnosis {
  Bottleneck bottleneck = Bottleneck::kUnknown;
  Trend trend = Trend::kUnknown;
  double rise_ms = 0;       ///< what the fitted line gains over the longest run
  double threshold_ms = 0;  ///< a rise below this is called flat
  /// The product of `factors`: how much evidence there is, how far the deciding figure is from the point where the
  /// verdict would change, and how much of what could speak for another verdict was in sight. 0: a guess. 1: nothing is
  /// missing.
  double confidence = 0;
  std::vector<Factor> factors;
  std::string where;                ///< one or two sentences
  std::vector<std::string> advice;  ///< the first is the first thing to try
};

Diagnosis diagnose(const Observations& seen);

/// How the producer's queue grew: "+0.70 a record", "+700.00 from line to line", "growth unknown".
std::string queue_growth(const Observations& seen);

/// 14485 as "14,485", rounded.
std::string with_commas(double number);

}  // namespace weir::bench
