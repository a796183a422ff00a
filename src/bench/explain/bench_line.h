// `weir bench seed --json` as explain reads it: its line says what thousands of message lines would. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "bench/explain/observe.h"

namespace weir::bench {

/// The run "question" of such a line; none when `line` is not one.
std::optional<Observations> parse_bench_line(std::string_view line);

}  // namespace weir::bench
