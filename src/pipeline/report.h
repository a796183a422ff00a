// What `weir up` says: the status line while it runs and the one JSON line at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "metrics/tally.h"
#include "sink/sink.h"
#include "weir/flow.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::pipeline {

/// Counts of one run. On an empty data directory
///   read = stored + duplicates + dead_lettered + lag + agent_in_memory + spooled + shed + rejected.
/// Unless the drain's deadline cut off requests on their way to the broker: it may have appended their records all the
/// same, and nobody knows. They count in agent_in_memory and again in stored or lag, so the right side is larger by
/// `agent_in_memory` at most. Files are read again from there, and the store drops what it has as duplicates.
struct Report {
  std::uint64_t offered = 0;  ///< entries due by the generator's schedule; for files and stdin: entries read
  std::uint64_t read = 0;
  std::uint64_t acked = 0;
  std::uint64_t stored = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t agent_in_memory = 0;  ///< read, and not known to be in the broker
  std::uint64_t sink_in_memory = 0;
  std::uint64_t spooled = 0;
  metrics::Reasons shed;              ///< by reason
  metrics::Reasons rejected;          ///< by reason
  std::optional<std::int64_t> lag;    ///< log ends minus the store's positions, after the drain; empty: not known
  std::optional<double> lag_seconds;  ///< the largest of the group's partitions when the inputs stopped
  LatencySummary latency;             ///< read to stored
  LatencySummary error_latency;       ///< the same for logs_error
  Bytes peak_buffer_bytes = 0;        ///< highest charge of buffer.memory
  std::uint64_t long_lines = 0;       ///< cut or left out at `line_limit`
  metrics::Reasons lost_bytes;        ///< gone from the files before they were read, by reason

  /// True when records were shed or rejected: the run exits with 3.
  bool lost() const { return !shed.empty() || !rejected.empty(); }
};

/// One line of JSON, without a line end; the keys in the order above, `behind` (offered - read) after `read`.
std::string to_json(const Report& report);
/// The same of one part alone.
std::string to_json(const agent::AgentStats& stats);
std::string to_json(const sink::SinkStats& stats);

/// What was lost and what to do about it, a line for each reason: "rejected 1 record: too_large (limit 1,000,000 bytes;
/// raise max.request.size)".
std::vector<std::string> loss_lines(const metrics::Reasons& shed, const metrics::Reasons& rejected,
                                    Bytes max_request_size);
/// What an end left unacknowledged; empty when nothing. `gave_up`: why the end came early, if it did: "no broker
/// answered". `unread`: bytes that should have been read.
std::string left_behind(std::uint64_t in_memory, std::string_view gave_up, Duration drain, Bytes unread = 0);
/// What was not read as it stood: long lines, bytes gone from files. No line for nothing.
std::vector<std::string> damage_lines(std::uint64_t long_lines, const agent::AgentSettings& settings,
                                      const metrics::Reasons& lost_bytes);

/// What the status line is made of, taken once a second.
struct Status {
  std::uint64_t read = 0;
  std::uint64_t acked = 0;
  std::uint64_t stored = 0;
  double read_per_s = 0;
  double stored_per_s = 0;
  std::optional<std::int64_t> lag;  ///< empty: not known, shown as "?"
  LimitState limit;
  LatencySummary latency;
};

/// The lag to show: the guard's, which may be a second old, but never less than what is known to be acknowledged and
/// not yet dealt with by the sink in this run.
std::optional<std::int64_t> shown_lag(std::optional<std::int64_t> measured, std::uint64_t acked, std::uint64_t done);

/// "read 12,000 (4,000/s)  acked 11,900  stored 8,000 (2,000/s)  lag 3,900  limit 10,000 records: <why>  p50 12 ms  p99
/// 80 ms".
std::string status_line(const Status& status);

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);
/// "1 record", "2,000 records".
std::string counted(std::uint64_t number, std::string_view what);

}  // namespace weir::pipeline
