// OffsetCommit: store how far a group has read.
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

struct OffsetCommitResponse;

struct OffsetCommitRequest {
  static constexpr ApiKey kApiKey = ApiKey::kOffsetCommit;
  using Response = OffsetCommitResponse;

  struct OffsetCommitRequestPartition {
    std::int32_t partition_index = 0;
    std::int64_t committed_offset = 0;
    std::int32_t committed_leader_epoch = -1;
    std::optional<std::string> committed_metadata;

    WEIR_STRUCT(OffsetCommitRequestPartition,
                WEIR_FIELD(partition_index, since(0)),
                WEIR_FIELD(committed_offset, since(0)),
                WEIR_FIELD(committed_leader_epoch, since(6)),
                WEIR_FIELD(committed_metadata, since(0).nullable(0)))
  };

  struct OffsetCommitRequestTopic {
    std::string name;
    wire::Uuid topic_id;
    std::vector<OffsetCommitRequestPartition> partitions;

    WEIR_STRUCT(OffsetCommitRequestTopic,
                WEIR_FIELD(name, between(0, 9)),
                WEIR_FIELD(topic_id, since(10)),
                WEIR_FIELD(partitions, since(0)))
  };

  std::string group_id;
  std::int32_t generation_id_or_member_epoch = -1;
  std::string member_id;
  std::optional<std::string> group_instance_id;
  std::int64_t retention_time_ms = -1;
  std::vector<OffsetCommitRequestTopic> topics;

  WEIR_MESSAGE(OffsetCommitRequest,
               valid(2, 10).flexible(8),
               WEIR_FIELD(group_id, since(0)),
               WEIR_FIELD(generation_id_or_member_epoch, since(1)),
               WEIR_FIELD(member_id, since(1)),
               WEIR_FIELD(group_instance_id, since(7).nullable(7)),
               WEIR_FIELD(retention_time_ms, between(2, 4)),
               WEIR_FIELD(topics, since(0)))
};

struct OffsetCommitResponse {
  static constexpr ApiKey kApiKey = ApiKey::kOffsetCommit;

  struct OffsetCommitResponsePartition {
    std::int32_t partition_index = 0;
    ErrorCode error_code = ErrorCode::kNone;

    WEIR_STRUCT(OffsetCommitResponsePartition, WEIR_FIELD(partition_index, since(0)), WEIR_FIELD(error_code, since(0)))
  };

  struct OffsetCommitResponseTopic {
    std::string name;
    wire::Uuid topic_id;
    std::vector<OffsetCommitResponsePartition> partitions;

    WEIR_STRUCT(OffsetCommitResponseTopic,
                WEIR_FIELD(name, between(0, 9)),
                WEIR_FIELD(topic_id, since(10)),
                WEIR_FIELD(partitions, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<OffsetCommitResponseTopic> topics;

  WEIR_MESSAGE(OffsetCommitResponse,
               valid(2, 10).flexible(8),
               WEIR_FIELD(throttle_time_ms, since(3)),
               WEIR_FIELD(topics, since(0)))
};

}  // namespace weir::protocol
