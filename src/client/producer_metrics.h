// A producer's numbers as metrics: kafka_producer_record_send_rate, weir_producer_*, weir_limit.
#pragma once

#include <string>

#include "weir/metrics.h"
#include "weir/producer.h"

namespace weir::client {

/// From now on `registry` shows the producer's numbers under this client id. Let go of the handle before the producer;
/// the registry must outlive both.
[[nodiscard]] Registry::Hook expose(const Producer& producer, const std::string& client_id, Registry& registry);

}  // namespace weir::client
