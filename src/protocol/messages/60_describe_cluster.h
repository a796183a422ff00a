// DescribeCluster: cluster id, controller and brokers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct DescribeClusterResponse;

struct DescribeClusterRequest {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeCluster;
  using Response = DescribeClusterResponse;

  bool include_cluster_authorized_operations = false;
  std::int8_t endpoint_type = 1;
  bool include_fenced_brokers = false;

  WEIR_MESSAGE(DescribeClusterRequest,
               valid(0, 2).flexible(0),
               WEIR_FIELD(include_cluster_authorized_operations, since(0)),
               WEIR_FIELD(endpoint_type, since(1)),
               WEIR_FIELD(include_fenced_brokers, since(2)))
};

struct DescribeClusterResponse {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeCluster;

  struct DescribeClusterBroker {
    std::int32_t broker_id = 0;
    std::string host;
    std::int32_t port = 0;
    std::optional<std::string> rack;
    bool is_fenced = false;

    WEIR_STRUCT(DescribeClusterBroker,
                WEIR_FIELD(broker_id, since(0)),
                WEIR_FIELD(host, since(0)),
                WEIR_FIELD(port, since(0)),
                WEIR_FIELD(rack, since(0).nullable(0)),
                WEIR_FIELD(is_fenced, since(2)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::optional<std::string> error_message;
  std::int8_t endpoint_type = 1;
  std::string cluster_id;
  std::int32_t controller_id = -1;
  std::vector<DescribeClusterBroker> brokers;
  std::int32_t cluster_authorized_operations = INT32_MIN;

  WEIR_MESSAGE(DescribeClusterResponse,
               valid(0, 2).flexible(0),
               WEIR_FIELD(throttle_time_ms, since(0)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(error_message, since(0).nullable(0)),
               WEIR_FIELD(endpoint_type, since(1)),
               WEIR_FIELD(cluster_id, since(0)),
               WEIR_FIELD(controller_id, since(0)),
               WEIR_FIELD(brokers, since(0)),
               WEIR_FIELD(cluster_authorized_operations, since(0)))
};

}  // namespace weir::protocol
