#include "broker/server_metrics.h"

#include <string>

#include "broker/api_table.h"
#include "broker/core.h"
#include "broker/request_queue.h"
#include "metrics/names.h"

namespace weir::broker {
namespace {
const std::string kOtherClients = "(other)";
}

ServerMetrics::ServerMetrics(Registry& registry, const RequestQueue& queue, const CoreCounts& counts)
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
  Counter& produced_bytes = registry.counter(metrics::kBrokerProducedBytes);
  Counter& produced_records = registry.counter(metrics::kBrokerProducedRecords);
  Counter& fetched_bytes = registry.counter(metrics::kBrokerFetchedBytes);
  Counter& refused = registry.counter(metrics::kBrokerLogErrors, {{"reason", "append"}});
  hook_ = registry.on_collect([&, queue = &queue, counts = &counts] {
    size.set(static_cast<double>(queue->requests()));
    bytes.set(static_cast<double>(queue->bytes()));
    produced_bytes.raise_to(counts->produced_bytes);
    produced_records.raise_to(counts->produced_records);
    fetched_bytes.raise_to(counts->fetched_bytes);
    refused.raise_to(counts->refused_appends);
  });
}

const Metric& ServerMetrics::refused_metric() { return metrics::kBrokerConnectionsRefused; }

void ServerMetrics::answered(std::int16_t api_key, Duration took) {
  const auto it = apis_.find(api_key);
  if (it == apis_.end()) return;
  it->second.requests->add();
  it->second.seconds->record(took);
}

void ServerMetrics::throttled(const std::string& client_id, std::int16_t api_key, Duration how_long) {
  const bool produce = api_key == static_cast<std::int16_t>(protocol::ApiKey::kProduce);
  constexpr std::size_t kMaxSeries = 200;
  std::lock_guard lock(mutex_);
  // Clients choose their ids: the ones beyond share a label.
  const bool known = throttled_.contains({client_id, produce}) || throttled_.size() < kMaxSeries;
  const std::string& label = known ? client_id : kOtherClients;
  const Labels labels{{"client_id", label}, {"quota", produce ? "produce" : "fetch"}};
  registry_.counter(metrics::kBrokerThrottled, labels).add();
  Duration& total = throttled_[{label, produce}];
  total += how_long;
  registry_.counter(metrics::kBrokerThrottleSeconds, labels).raise_to(static_cast<std::uint64_t>(to_seconds(total)));
}

void ServerMetrics::log_error(const char* reason) {
  registry_.counter(metrics::kBrokerLogErrors, {{"reason", reason}}).add();
}

}  // namespace weir::broker
