// Produce: append record batches to partitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"
#include "wire/uuid.h"

namespace weir::protocol {

struct ProduceResponse;

struct ProduceRequest {
  static constexpr ApiKey kApiKey = ApiKey::kProduce;
  using Response = ProduceResponse;

  struct PartitionProduceData {
    std::int32_t index = 0;
    std::optional<SharedBytes> records;

    WEIR_STRUCT(PartitionProduceData, WEIR_FIELD(index, since(0)), WEIR_FIELD(records, since(0).nullable(0)))
  };

  struct TopicProduceData {
    std::string name;
    wire::Uuid topic_id;
    std::vector<PartitionProduceData> partition_data;

    WEIR_STRUCT(TopicProduceData,
                WEIR_FIELD(name, between(0, 12)),
                WEIR_FIELD(topic_id, since(13)),
                WEIR_FIELD(partition_data, since(0)))
  };

  std::optional<std::string> transactional_id;
  std::int16_t acks = 0;
  std::int32_t timeout_ms = 0;
  std::vector<TopicProduceData> topic_data;

  WEIR_MESSAGE(ProduceRequest,
               valid(3, 13).flexible(9),
               WEIR_FIELD(transactional_id, since(3).nullable(3)),
               WEIR_FIELD(acks, since(0)),
               WEIR_FIELD(timeout_ms, since(0)),
               WEIR_FIELD(topic_data, since(0)))
};

struct ProduceResponse {
  static constexpr ApiKey kApiKey = ApiKey::kProduce;

  struct BatchIndexAndErrorMessage {
    std::int32_t batch_index = 0;
    std::optional<std::string> batch_index_error_message;

    WEIR_STRUCT(BatchIndexAndErrorMessage,
                WEIR_FIELD(batch_index, since(8)),
                WEIR_FIELD(batch_index_error_message, since(8).nullable(8)))
  };

  struct LeaderIdAndEpoch {
    std::int32_t leader_id = -1;
    std::int32_t leader_epoch = -1;

    WEIR_STRUCT(LeaderIdAndEpoch, WEIR_FIELD(leader_id, since(10)), WEIR_FIELD(leader_epoch, since(10)))
  };

  struct PartitionProduceResponse {
    std::int32_t index = 0;
    ErrorCode error_code = ErrorCode::kNone;
    std::int64_t base_offset = 0;
    std::int64_t log_append_time_ms = -1;
    std::int64_t log_start_offset = -1;
    std::vector<BatchIndexAndErrorMessage> record_errors;
    std::optional<std::string> error_message;
    LeaderIdAndEpoch current_leader;

    WEIR_STRUCT(PartitionProduceResponse,
                WEIR_FIELD(index, since(0)),
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(base_offset, since(0)),
                WEIR_FIELD(log_append_time_ms, since(2)),
                WEIR_FIELD(log_start_offset, since(5)),
                WEIR_FIELD(record_errors, since(8)),
                WEIR_FIELD(error_message, since(8).nullable(8)),
                WEIR_FIELD(current_leader, since(10).tagged(0)))
  };

  struct TopicProduceResponse {
    std::string name;
    wire::Uuid topic_id;
    std::vector<PartitionProduceResponse> partition_responses;

    WEIR_STRUCT(TopicProduceResponse,
                WEIR_FIELD(name, between(0, 12)),
                WEIR_FIELD(topic_id, since(13)),
                WEIR_FIELD(partition_responses, since(0)))
  };

  struct NodeEndpoint {
    std::int32_t node_id = 0;
    std::string host;
    std::int32_t port = 0;
    std::optional<std::string> rack;

    WEIR_STRUCT(NodeEndpoint,
                WEIR_FIELD(node_id, since(10)),
                WEIR_FIELD(host, since(10)),
                WEIR_FIELD(port, since(10)),
                WEIR_FIELD(rack, since(10).nullable(10)))
  };

  std::vector<TopicProduceResponse> responses;
  std::int32_t throttle_time_ms = 0;
  std::vector<NodeEndpoint> node_endpoints;

  WEIR_MESSAGE(ProduceResponse,
               valid(3, 13).flexible(9),
               WEIR_FIELD(responses, since(0)),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(node_endpoints, since(10).tagged(0)))
};

}  // namespace weir::protocol
