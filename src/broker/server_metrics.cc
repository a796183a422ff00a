#include "broker/server_metrics.h"

#include <string>

#include "broker/api_table.h"
#include "broker/request_queue.h"
#include "metrics/names.h"

namespace weir::broker {

ServerMetrics::ServerMetrics(Registry& registry, const RequestQueue& queue)
    : registry_(registry),
      connections_(registry.gauge(metrics::kBrokerConnections)),
      flush_(registry.latency(metrics::kBrokerFlushSeconds)) {
  for (const broker::Api& api : apis()) {
    const Labels labels{{"api", std::string(protocol::name(api.key))}};
    apis_[static_cast<std::int16_t>(api.key)] = {&registry.counter(metrics::kBrokerRequests, labels),
                                                 &registry.latency(metrics::kBrokerRequestSeconds, labels)};
  }
  Gauge& size = registry.gauge(metrics::kBrokerRequestQueueSize);
  Gauge& bytes = registry.gauge(metrics::kBrokerRequestQueueBytes);
  hook_ = registry.on_collect([&size, &bytes, &queue] {
    size.set(static_cast<double>(queue.requests()));
    bytes.set(static_cast<double>(queue.bytes()));
  });
}

const Metric& ServerMetrics::refused_metric() { return metrics::kBrokerConnectionsRefused; }

void ServerMetrics::answered(std::int16_t api_key, Duration took) {
  const auto it = apis_.find(api_key);
  if (it == apis_.end()) return;
  it->second.requests->add();
  it->second.seconds->record(took);
}

void ServerMetrics::log_error(const char* reason) {
  registry_.counter(metrics::kBrokerLogErrors, {{"reason", reason}}).add();
}

}  // namespace weir::broker
