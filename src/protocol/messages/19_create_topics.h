// CreateTopics.
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

struct CreateTopicsResponse;

struct CreateTopicsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kCreateTopics;
  using Response = CreateTopicsResponse;

  struct CreatableReplicaAssignment {
    std::int32_t partition_index = 0;
    std::vector<std::int32_t> broker_ids;

    WEIR_STRUCT(CreatableReplicaAssignment, WEIR_FIELD(partition_index, since(0)), WEIR_FIELD(broker_ids, since(0)))
  };

  struct CreatableTopicConfig {
    std::string name;
    std::optional<std::string> value;

    WEIR_STRUCT(CreatableTopicConfig, WEIR_FIELD(name, since(0)), WEIR_FIELD(value, since(0).nullable(0)))
  };

  struct CreatableTopic {
    std::string name;
    std::int32_t num_partitions = 0;
    std::int16_t replication_factor = 0;
    std::vector<CreatableReplicaAssignment> assignments;
    std::vector<CreatableTopicConfig> configs;

    WEIR_STRUCT(CreatableTopic,
                WEIR_FIELD(name, since(0)),
                WEIR_FIELD(num_partitions, since(0)),
                WEIR_FIELD(replication_factor, since(0)),
                WEIR_FIELD(assignments, since(0)),
                WEIR_FIELD(configs, since(0)))
  };

  std::vector<CreatableTopic> topics;
  std::int32_t timeout_ms = 60000;
  bool validate_only = false;

  WEIR_MESSAGE(CreateTopicsRequest,
               valid(2, 7).flexible(5),
               WEIR_FIELD(topics, since(0)),
               WEIR_FIELD(timeout_ms, since(0)),
               WEIR_FIELD(validate_only, since(1)))
};

struct CreateTopicsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kCreateTopics;

  struct CreatableTopicConfigs {
    std::string name;
    std::optional<std::string> value;
    bool read_only = false;
    std::int8_t config_source = -1;
    bool is_sensitive = false;

    WEIR_STRUCT(CreatableTopicConfigs,
                WEIR_FIELD(name, since(5)),
                WEIR_FIELD(value, since(5).nullable(5)),
                WEIR_FIELD(read_only, since(5)),
                WEIR_FIELD(config_source, since(5)),
                WEIR_FIELD(is_sensitive, since(5)))
  };

  struct CreatableTopicResult {
    std::string name;
    wire::Uuid topic_id;
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;
    std::int16_t topic_config_error_code = 0;
    std::int32_t num_partitions = -1;
    std::int16_t replication_factor = -1;
    std::optional<std::vector<CreatableTopicConfigs>> configs;

    WEIR_STRUCT(CreatableTopicResult,
                WEIR_FIELD(name, since(0)),
                WEIR_FIELD(topic_id, since(7)),
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(error_message, since(1).nullable(0)),
                WEIR_FIELD(topic_config_error_code, since(5).tagged(0)),
                WEIR_FIELD(num_partitions, since(5)),
                WEIR_FIELD(replication_factor, since(5)),
                WEIR_FIELD(configs, since(5).nullable(5)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<CreatableTopicResult> topics;

  WEIR_MESSAGE(CreateTopicsResponse,
               valid(2, 7).flexible(5),
               WEIR_FIELD(throttle_time_ms, since(2)),
               WEIR_FIELD(topics, since(0)))
};

}  // namespace weir::protocol
