// The guard: measures the lag of consumer groups on any Kafka, steers weir's producers, and shows both over HTTP.
//
// Runs by itself (`weir guard`) or inside a pipeline (`weir up`), which adds its own status and metrics to it.
//   GET  /                      the page          GET  /metrics, /healthz
//   GET  /api/status, /api/lag?group=, /api/check/{group}, /api/events (the status, streamed)
//   GET  /api/directives?client_id=&topics=&laws=   what producers poll
//   POST /api/pause, /api/resume, /api/limit
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/admin.h"
#include "guard/cluster_source.h"
#include "guard/lag.h"
#include "guard/lag_monitor.h"
#include "guard/steering.h"
#include "http/server.h"
#include "weir/flow.h"
#include "weir/metrics.h"

namespace weir::guard {

struct GuardSettings {
  client::AdminSettings admin{.client_id = "weir-guard", .timeout = std::chrono::seconds(2)};
  http::ServerSettings http{.port = 8080};
  Duration period = defaults::kGuardPeriod;
  /// Groups to measure; all of the cluster's when empty.
  std::vector<std::string> measure;
  /// Topics whose logs are watched before a group reads them, so that its first lag in time is known.
  std::vector<std::string> topics;
  LagMonitorSettings lag;
  /// The laws; no groups: nothing is steered. A pipeline that uses the end-to-end window leaves it so.
  SteeringSettings steering;
  /// /api/check says wait above either.
  Duration lag_target = defaults::kLagTarget;
  std::int64_t max_lag = defaults::kMaxLag;
  /// The longest an operator's order may stand, and what it gets when it does not say.
  Duration max_ttl = std::chrono::hours(24);
  Duration default_ttl = defaults::kDirectiveTtl;
};

/// What a pipeline in the same process adds to the status. Counts are since its start, rates those of the last second.
struct PipelineStatus {
  std::uint64_t read = 0;
  std::uint64_t acked = 0;
  std::uint64_t stored = 0;
  double read_per_s = 0;
  double acked_per_s = 0;
  double stored_per_s = 0;
  std::optional<std::int64_t> lag;  ///< None: not known.
  std::optional<double> lag_seconds;
  LimitState limit;
  std::optional<double> latency_p50_ms;  ///< Read to stored.
  std::optional<double> latency_p99_ms;
  std::uint64_t shed = 0;
  std::uint64_t rejected = 0;
};

/// Owns a measuring thread and the HTTP server's thread. Every function may be called from any thread, except start()
/// and stop(), which belong to the owner.
class Guard {
 public:
  /// `metrics` outlives the guard; /metrics shows all of it, the lag series in addition. `source`: for tests; Kafka at
  /// settings.admin when null.
  Guard(GuardSettings settings, Registry& metrics, std::unique_ptr<ClusterSource> source = nullptr);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Called on the guard's threads: must not wait. Set before start().
  void set_pipeline_status(std::function<PipelineStatus()> status);
  /// Called on the guard's threads after every order and every measurement: a pipeline in the same process then reads
  /// directives(). Must not wait. Set before start().
  void on_directives(std::function<void()> changed);

  /// Listens and begins to measure. It starts without Kafka too: lag is then unknown until it answers.
  Result<http::Address> start();
  /// Within about a second, even while Kafka hangs. Idempotent.
  void stop();

  /// The newest measurement; empty before the first.
  std::shared_ptr<const LagSnapshot> lag() const;
  /// One that began after the call; waits for it, at most `timeout`, and then answers the newest there is.
  std::shared_ptr<const LagSnapshot> measure(Duration timeout);
  /// What producers are told now. Expiries are capped to the directive ttl: they end soon when nobody renews them.
  std::vector<Directive> directives(const DirectiveQuery& query = {}) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::guard
