// ListOffsets: first, last or time-indexed offsets of partitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct ListOffsetsResponse;

struct ListOffsetsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kListOffsets;
  using Response = ListOffsetsResponse;

  struct ListOffsetsPartition {
    std::int32_t partition_index = 0;
    std::int32_t current_leader_epoch = -1;
    std::int64_t timestamp = 0;

    WEIR_STRUCT(ListOffsetsPartition,
                WEIR_FIELD(partition_index, since(0)),
                WEIR_FIELD(current_leader_epoch, since(4)),
                WEIR_FIELD(timestamp, since(0)))
  };

  struct ListOffsetsTopic {
    std::string name;
    std::vector<ListOffsetsPartition> partitions;

    WEIR_STRUCT(ListOffsetsTopic, WEIR_FIELD(name, since(0)), WEIR_FIELD(partitions, since(0)))
  };

  std::int32_t replica_id = 0;
  std::int8_t isolation_level = 0;
  std::vector<ListOffsetsTopic> topics;
  std::int32_t timeout_ms = 0;

  WEIR_MESSAGE(ListOffsetsRequest,
               valid(1, 11).flexible(6),
               WEIR_FIELD(replica_id, since(0)),
               WEIR_FIELD(isolation_level, since(2)),
               WEIR_FIELD(topics, since(0)),
               WEIR_FIELD(timeout_ms, since(10)))
};

struct ListOffsetsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kListOffsets;

  struct ListOffsetsPartitionResponse {
    std::int32_t partition_index = 0;
    ErrorCode error_code = ErrorCode::kNone;
    std::int64_t timestamp = -1;
    std::int64_t offset = -1;
    std::int32_t leader_epoch = -1;

    WEIR_STRUCT(ListOffsetsPartitionResponse,
                WEIR_FIELD(partition_index, since(0)),
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(timestamp, since(1)),
                WEIR_FIELD(offset, since(1)),
                WEIR_FIELD(leader_epoch, since(4)))
  };

  struct ListOffsetsTopicResponse {
    std::string name;
    std::vector<ListOffsetsPartitionResponse> partitions;

    WEIR_STRUCT(ListOffsetsTopicResponse, WEIR_FIELD(name, since(0)), WEIR_FIELD(partitions, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<ListOffsetsTopicResponse> topics;

  WEIR_MESSAGE(ListOffsetsResponse,
               valid(1, 11).flexible(6),
               WEIR_FIELD(throttle_time_ms, since(2)),
               WEIR_FIELD(topics, since(0)))
};

}  // namespace weir::protocol
