// What happened to each record of a run, and the figures made from it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/explain/observe.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::bench {

/// One record on its way, in wall-clock time. The sending thread, the producer's callback and the receiving thread each
/// write their own members; read it when all have ended.
struct Trip {
  WallTime intended;               ///< the program had it and wanted to send it
  WallTime accepted;               ///< the producer took it: the time between is the time blocked
  std::optional<WallTime> handed;  ///< handed to the client library (guarded producer only)
  std::int64_t stamp_ms = -1;      ///< LogAppendTime
  WallTime received;               ///< poll() returned it
  WallTime done;                   ///< the work for it was over

  double latency_ms() const { return to_ms(received - from_unix_ms(stamp_ms)); }
};

/// The figures of one run. Latency is receive minus append.
struct Figures {
  std::int64_t messages = 0;
  double first_ms = 0, last_ms = 0, p50_ms = 0, p99_ms = 0, max_ms = 0;
  std::optional<double> slope_ms_per_1000;
  std::optional<double> arrival_per_s;
  std::optional<double> service_per_s;
  double intended_to_received_p99_ms = 0;
  double blocked_ms = 0;  ///< summed time between intended and accepted
  double seconds = 0;     ///< first to last receive
  /// Where the time of a record went: queued (in send()), sent (waiting in our producer), acked (to the append),
  /// fetched (to poll), stored (the work).
  std::vector<std::pair<std::string, LatencySummary>> stages;
};
Figures figures_of(std::span<const Trip> trips);

/// The same trips as `explain` would see them.
Observations observe(std::span<const Trip> trips);

}  // namespace weir::bench
