// What `weir up` says: the status line while it runs and the one JSON line at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weir/flow.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::pipeline {

/// Counts of one run. On an empty data directory
///   read = stored + duplicates + dead_lettered + lag + agent_in_memory + spooled + shed + rejected.
struct Report {
  std::uint64_t offered = 0;  ///< entries due by the generator's schedule; for files and stdin: entries read
  std::uint64_t read = 0;
  std::uint64_t acked = 0;
  std::uint64_t stored = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t agent_in_memory = 0;
  std::uint64_t sink_in_memory = 0;
  std::uint64_t spooled = 0;
  std::map<std::string, std::uint64_t> shed;      ///< by reason
  std::map<std::string, std::uint64_t> rejected;  ///< by reason
  std::optional<std::int64_t> lag;    ///< log ends minus the store's positions, after the drain; empty: not known
  std::optional<double> lag_seconds;  ///< the largest of the group's partitions when the inputs stopped
  LatencySummary latency;             ///< read to stored
  LatencySummary error_latency;       ///< the same for logs_error
  Bytes peak_buffer_bytes = 0;        ///< highest charge of buffer.memory

  /// True when records were shed or rejected: the run exits with 3.
  bool lost() const { return !shed.empty() || !rejected.empty(); }
};

/// One line of JSON, without a line end; the keys in the order above, `behind` (offered - read) after `read`.
std::string to_json(const Report& report);

/// What the status line is made of, taken once a second.
struct Status {
  std::uint64_t read = 0;
  std::uint64_t acked = 0;
  std::uint64_t stored = 0;
  double read_per_s = 0;
  double stored_per_s = 0;
  std::optional<std::int64_t> lag;
  LimitState limit;
  LatencySummary latency;
};

/// "read 12,000 (4,000/s)  acked 11,900  stored 8,000 (2,000/s)  lag 3,900  limit 10,000 records: <why>  p50 12 ms  p99
/// 80 ms".
std::string status_line(const Status& status);

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);

}  // namespace weir::pipeline
