// OffsetFetch: how far groups have read. One group up to version 7, many from version 8.
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

struct OffsetFetchResponse;

struct OffsetFetchRequest {
  static constexpr ApiKey kApiKey = ApiKey::kOffsetFetch;
  using Response = OffsetFetchResponse;

  struct OffsetFetchRequestTopic {
    std::string name;
    std::vector<std::int32_t> partition_indexes;

    WEIR_STRUCT(OffsetFetchRequestTopic, WEIR_FIELD(name, between(0, 7)), WEIR_FIELD(partition_indexes, between(0, 7)))
  };

  struct OffsetFetchRequestTopics {
    std::string name;
    wire::Uuid topic_id;
    std::vector<std::int32_t> partition_indexes;

    WEIR_STRUCT(OffsetFetchRequestTopics,
                WEIR_FIELD(name, between(8, 9)),
                WEIR_FIELD(topic_id, since(10)),
                WEIR_FIELD(partition_indexes, since(8)))
  };

  struct OffsetFetchRequestGroup {
    std::string group_id;
    std::optional<std::string> member_id;
    std::int32_t member_epoch = -1;
    std::optional<std::vector<OffsetFetchRequestTopics>> topics;

    WEIR_STRUCT(OffsetFetchRequestGroup,
                WEIR_FIELD(group_id, since(8)),
                WEIR_FIELD(member_id, since(9).nullable(9)),
                WEIR_FIELD(member_epoch, since(9)),
                WEIR_FIELD(topics, since(8).nullable(8)))
  };

  std::string group_id;
  std::optional<std::vector<OffsetFetchRequestTopic>> topics;
  std::vector<OffsetFetchRequestGroup> groups;
  bool require_stable = false;

  WEIR_MESSAGE(OffsetFetchRequest,
               valid(1, 10).flexible(6),
               WEIR_FIELD(group_id, between(0, 7)),
               WEIR_FIELD(topics, between(0, 7).nullable(2, 7)),
               WEIR_FIELD(groups, since(8)),
               WEIR_FIELD(require_stable, since(7)))
};

struct OffsetFetchResponse {
  static constexpr ApiKey kApiKey = ApiKey::kOffsetFetch;

  struct OffsetFetchResponsePartition {
    std::int32_t partition_index = 0;
    std::int64_t committed_offset = 0;
    std::int32_t committed_leader_epoch = -1;
    std::optional<std::string> metadata;
    ErrorCode error_code = ErrorCode::kNone;

    WEIR_STRUCT(OffsetFetchResponsePartition,
                WEIR_FIELD(partition_index, between(0, 7)),
                WEIR_FIELD(committed_offset, between(0, 7)),
                WEIR_FIELD(committed_leader_epoch, between(5, 7)),
                WEIR_FIELD(metadata, between(0, 7).nullable(0, 7)),
                WEIR_FIELD(error_code, between(0, 7)))
  };

  struct OffsetFetchResponseTopic {
    std::string name;
    std::vector<OffsetFetchResponsePartition> partitions;

    WEIR_STRUCT(OffsetFetchResponseTopic, WEIR_FIELD(name, between(0, 7)), WEIR_FIELD(partitions, between(0, 7)))
  };

  struct OffsetFetchResponsePartitions {
    std::int32_t partition_index = 0;
    std::int64_t committed_offset = 0;
    std::int32_t committed_leader_epoch = -1;
    std::optional<std::string> metadata;
    ErrorCode error_code = ErrorCode::kNone;

    WEIR_STRUCT(OffsetFetchResponsePartitions,
                WEIR_FIELD(partition_index, since(8)),
                WEIR_FIELD(committed_offset, since(8)),
                WEIR_FIELD(committed_leader_epoch, since(8)),
                WEIR_FIELD(metadata, since(8).nullable(8)),
                WEIR_FIELD(error_code, since(8)))
  };

  struct OffsetFetchResponseTopics {
    std::string name;
    wire::Uuid topic_id;
    std::vector<OffsetFetchResponsePartitions> partitions;

    WEIR_STRUCT(OffsetFetchResponseTopics,
                WEIR_FIELD(name, between(8, 9)),
                WEIR_FIELD(topic_id, since(10)),
                WEIR_FIELD(partitions, since(8)))
  };

  struct OffsetFetchResponseGroup {
    std::string group_id;
    std::vector<OffsetFetchResponseTopics> topics;
    ErrorCode error_code = ErrorCode::kNone;

    WEIR_STRUCT(OffsetFetchResponseGroup,
                WEIR_FIELD(group_id, since(8)),
                WEIR_FIELD(topics, since(8)),
                WEIR_FIELD(error_code, since(8)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<OffsetFetchResponseTopic> topics;
  ErrorCode error_code = ErrorCode::kNone;
  std::vector<OffsetFetchResponseGroup> groups;

  WEIR_MESSAGE(OffsetFetchResponse,
               valid(1, 10).flexible(6),
               WEIR_FIELD(throttle_time_ms, since(3)),
               WEIR_FIELD(topics, between(0, 7)),
               WEIR_FIELD(error_code, between(2, 7)),
               WEIR_FIELD(groups, since(8)))
};

}  // namespace weir::protocol
