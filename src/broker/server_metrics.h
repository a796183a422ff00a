// What the server counts, looked up once.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "weir/metrics.h"

namespace weir::broker {

class RequestQueue;
struct CoreCounts;

/// Any thread.
class ServerMetrics {
 public:
  explicit ServerMetrics(Registry& registry, const RequestQueue& queue, const CoreCounts& counts);

  void answered(std::int16_t api_key, Duration took);
  void refused(const char* reason) { registry_.counter(refused_metric(), {{"reason", reason}}).add(); }
  Gauge& connections() { return connections_; }
  void flushed(Duration took) { flush_.record(took); }
  /// `api_key`: Produce or Fetch.
  void throttled(const std::string& client_id, std::int16_t api_key, Duration how_long);
  void log_error(const char* reason);

 private:
  static const Metric& refused_metric();
  struct Api {
    Counter* requests;
    LatencyMetric* seconds;
  };
  Registry& registry_;
  std::unordered_map<std::int16_t, Api> apis_;  // never changed after construction
  Gauge& connections_;
  LatencyMetric& flush_;
  std::mutex mutex_;
  std::map<std::pair<std::string, bool>, Duration> throttled_;  // guarded by mutex_: small delays add up to seconds
  Registry::Hook hook_;
};

}  // namespace weir::broker
