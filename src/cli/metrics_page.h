// /metrics and /healthz for a part that runs as a process of its own: `--http ADDR` of `weir agent` and `weir sink`.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "http/server.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::cli {

/// Settings of `--http`; `address` as `weir up --http` takes it. The error names the option.
Result<http::ServerSettings> read_http(const std::string& address);

/// Serves until destroyed. `metrics` outlives it; `health` says what is wrong, on the server's thread, and must not
/// wait.
Result<std::unique_ptr<http::Server>> serve_metrics(const http::ServerSettings& settings, Registry& metrics,
                                                    std::function<Result<void>()> health);

}  // namespace weir::cli
