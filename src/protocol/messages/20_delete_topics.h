// DeleteTopics: by name, from version 6 also by id.
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

struct DeleteTopicsResponse;

struct DeleteTopicsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kDeleteTopics;
  using Response = DeleteTopicsResponse;

  struct DeleteTopicState {
    std::optional<std::string> name;
    wire::Uuid topic_id;

    WEIR_STRUCT(DeleteTopicState, WEIR_FIELD(name, since(6).nullable(6)), WEIR_FIELD(topic_id, since(6)))
  };

  std::vector<DeleteTopicState> topics;
  std::vector<std::string> topic_names;
  std::int32_t timeout_ms = 0;

  WEIR_MESSAGE(DeleteTopicsRequest,
               valid(1, 6).flexible(4),
               WEIR_FIELD(topics, since(6)),
               WEIR_FIELD(topic_names, between(0, 5)),
               WEIR_FIELD(timeout_ms, since(0)))
};

struct DeleteTopicsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kDeleteTopics;

  struct DeletableTopicResult {
    std::optional<std::string> name;
    wire::Uuid topic_id;
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;

    WEIR_STRUCT(DeletableTopicResult,
                WEIR_FIELD(name, since(0).nullable(6)),
                WEIR_FIELD(topic_id, since(6)),
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(error_message, since(5).nullable(5)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<DeletableTopicResult> responses;

  WEIR_MESSAGE(DeleteTopicsResponse,
               valid(1, 6).flexible(4),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(responses, since(0)))
};

}  // namespace weir::protocol
