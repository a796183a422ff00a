// The tally: conservation counts. What came in is somewhere, or its loss has a reason.
//
//   read    = acked + spooled + in memory + shed(reason) + rejected(reason)                   (agent)
//   fetched = stored + duplicates + dead-lettered + in memory + skipped(reason)               (sink)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weir/metrics.h"

namespace weir::metrics {

/// Losses by reason: short stable words, usable as metric labels.
using Reasons = std::map<std::string, std::uint64_t, std::less<>>;
std::uint64_t sum(const Reasons& reasons);

/// The agent's side. A plain value: take one consistent copy, then ask it.
struct AgentTally {
  std::uint64_t read = 0;
  std::uint64_t acked = 0;
  std::uint64_t spooled = 0;
  std::uint64_t in_memory = 0;
  Reasons shed;
  Reasons rejected;

  /// read minus everything it can have become; 0 when nothing is unaccounted for.
  std::int64_t difference() const;
  /// Nothing when it holds; else one line with every term and the difference.
  std::optional<std::string> check() const;
};

/// The sink's side.
struct SinkTally {
  std::uint64_t fetched = 0;
  std::uint64_t stored = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t in_memory = 0;
  Reasons skipped;

  std::int64_t difference() const;
  std::optional<std::string> check() const;
};

}  // namespace weir::metrics
