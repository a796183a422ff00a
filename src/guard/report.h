// Lag as text: JSON for the API and `weir lag`, Prometheus' format for /metrics, a table for people.
#pragma once

#include <optional>
#include <string>

#include "guard/lag.h"
#include "weir/types.h"

namespace weir::guard {

/// One line: {"taken_ms","age_s","took_ms","errors","groups":[{"group","state","members","lag","lag_seconds",...,
/// "partitions":[...]}]}. What has no honest number is null. `age_s` is that of the last measurement that could ask
/// everything; the others are of the last attempt. `only`: this group; absent ones give an empty list.
std::string lag_to_json(const LagSnapshot& snapshot, MonoTime now,
                        const std::optional<std::string>& only = std::nullopt);

/// The lag series of /metrics. Rendered once per snapshot, so that a scrape costs a copy however many groups there are.
std::string lag_to_metrics(const LagSnapshot& snapshot);

/// A table, one line per partition and a closing line per group.
std::string lag_to_table(const LagSnapshot& snapshot, const std::optional<std::string>& only = std::nullopt);

}  // namespace weir::guard
