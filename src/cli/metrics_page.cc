#include "cli/metrics_page.h"

#include <cstdio>
#include <utility>

#include "pipeline/settings.h"

namespace weir::cli {

Result<http::ServerSettings> read_http(const std::string& address) {
  http::ServerSettings settings;
  if (auto done = pipeline::set_http_address(settings, address); !done) {
    return fail(done.error().kind, "--http: " + done.error().message);
  }
  return settings;
}

Result<std::unique_ptr<http::Server>> serve_metrics(const http::ServerSettings& settings, Registry& metrics,
                                                    std::function<Result<void>()> health) {
  auto server = std::make_unique<http::Server>(settings);
  server->serve_metrics([&metrics] { return metrics.text(); });
  server->serve_health(std::move(health));
  const auto address = server->start();
  if (!address) return tl::unexpected(address.error());
  std::fprintf(stderr, "metrics at http://%s/metrics\n", address->text().c_str());
  return server;
}

}  // namespace weir::cli
