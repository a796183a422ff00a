// FindCoordinator: which broker keeps a group or a transactional id. One key up to version 3, many from version 4.
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

struct FindCoordinatorResponse;

struct FindCoordinatorRequest {
  static constexpr ApiKey kApiKey = ApiKey::kFindCoordinator;
  using Response = FindCoordinatorResponse;

  std::string key;
  std::int8_t key_type = 0;
  std::vector<std::string> coordinator_keys;

  WEIR_MESSAGE(FindCoordinatorRequest,
               valid(0, 6).flexible(3),
               WEIR_FIELD(key, between(0, 3)),
               WEIR_FIELD(key_type, since(1)),
               WEIR_FIELD(coordinator_keys, since(4)))
};

struct FindCoordinatorResponse {
  static constexpr ApiKey kApiKey = ApiKey::kFindCoordinator;

  struct Coordinator {
    std::string key;
    std::int32_t node_id = 0;
    std::string host;
    std::int32_t port = 0;
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;

    WEIR_STRUCT(Coordinator,
                WEIR_FIELD(key, since(4)),
                WEIR_FIELD(node_id, since(4)),
                WEIR_FIELD(host, since(4)),
                WEIR_FIELD(port, since(4)),
                WEIR_FIELD(error_code, since(4)),
                WEIR_FIELD(error_message, since(4).nullable(4)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::optional<std::string> error_message;
  std::int32_t node_id = 0;
  std::string host;
  std::int32_t port = 0;
  std::vector<Coordinator> coordinators;

  WEIR_MESSAGE(FindCoordinatorResponse,
               valid(0, 6).flexible(3),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(error_code, between(0, 3)),
               WEIR_FIELD(error_message, between(1, 3).nullable(1, 3)),
               WEIR_FIELD(node_id, between(0, 3)),
               WEIR_FIELD(host, between(0, 3)),
               WEIR_FIELD(port, between(0, 3)),
               WEIR_FIELD(coordinators, since(4)))
};

}  // namespace weir::protocol
