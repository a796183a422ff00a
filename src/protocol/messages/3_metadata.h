// Metadata: brokers, topics, and who leads each partition. May create topics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"
#include "wire/uuid.h"

namespace weir::protocol {

struct MetadataResponse;

struct MetadataRequest {
  static constexpr ApiKey kApiKey = ApiKey::kMetadata;
  using Response = MetadataResponse;

  struct MetadataRequestTopic {
    wire::Uuid topic_id;
    std::optional<std::string> name;

    WEIR_STRUCT(MetadataRequestTopic, WEIR_FIELD(topic_id, since(10)), WEIR_FIELD(name, since(0).nullable(10)))
  };

  std::optional<std::vector<MetadataRequestTopic>> topics;
  bool allow_auto_topic_creation = true;
  bool include_cluster_authorized_operations = false;
  bool include_topic_authorized_operations = false;

  WEIR_MESSAGE(MetadataRequest,
               valid(0, 13).flexible(9),
               WEIR_FIELD(topics, since(0).nullable(1)),
               WEIR_FIELD(allow_auto_topic_creation, since(4)),
               WEIR_FIELD(include_cluster_authorized_operations, between(8, 10)),
               WEIR_FIELD(include_topic_authorized_operations, since(8)))
};

struct MetadataResponse {
  static constexpr ApiKey kApiKey = ApiKey::kMetadata;

  struct MetadataResponseBroker {
    std::int32_t node_id = 0;
    std::string host;
    std::int32_t port = 0;
    std::optional<std::string> rack;

    WEIR_STRUCT(MetadataResponseBroker,
                WEIR_FIELD(node_id, since(0)),
                WEIR_FIELD(host, since(0)),
                WEIR_FIELD(port, since(0)),
                WEIR_FIELD(rack, since(1).nullable(1)))
  };

  struct MetadataResponsePartition {
    ErrorCode error_code = ErrorCode::kNone;
    std::int32_t partition_index = 0;
    std::int32_t leader_id = 0;
    std::int32_t leader_epoch = -1;
    std::vector<std::int32_t> replica_nodes;
    std::vector<std::int32_t> isr_nodes;
    std::vector<std::int32_t> offline_replicas;

    WEIR_STRUCT(MetadataResponsePartition,
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(partition_index, since(0)),
                WEIR_FIELD(leader_id, since(0)),
                WEIR_FIELD(leader_epoch, since(7)),
                WEIR_FIELD(replica_nodes, since(0)),
                WEIR_FIELD(isr_nodes, since(0)),
                WEIR_FIELD(offline_replicas, since(5)))
  };

  struct MetadataResponseTopic {
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> name;
    wire::Uuid topic_id;
    bool is_internal = false;
    std::vector<MetadataResponsePartition> partitions;
    std::int32_t topic_authorized_operations = INT32_MIN;

    WEIR_STRUCT(MetadataResponseTopic,
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(name, since(0).nullable(12)),
                WEIR_FIELD(topic_id, since(10)),
                WEIR_FIELD(is_internal, since(1)),
                WEIR_FIELD(partitions, since(0)),
                WEIR_FIELD(topic_authorized_operations, since(8)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<MetadataResponseBroker> brokers;
  std::optional<std::string> cluster_id;
  std::int32_t controller_id = -1;
  std::vector<MetadataResponseTopic> topics;
  std::int32_t cluster_authorized_operations = INT32_MIN;
  ErrorCode error_code = ErrorCode::kNone;

  WEIR_MESSAGE(MetadataResponse,
               valid(0, 13).flexible(9),
               WEIR_FIELD(throttle_time_ms, since(3)),
               WEIR_FIELD(brokers, since(0)),
               WEIR_FIELD(cluster_id, since(2).nullable(2)),
               WEIR_FIELD(controller_id, since(1)),
               WEIR_FIELD(topics, since(0)),
               WEIR_FIELD(cluster_authorized_operations, between(8, 10)),
               WEIR_FIELD(error_code, since(13)))
};

}  // namespace weir::protocol
