// Heartbeat: a member of a classic group is alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct HeartbeatResponse;

struct HeartbeatRequest {
  static constexpr ApiKey kApiKey = ApiKey::kHeartbeat;
  using Response = HeartbeatResponse;

  std::string group_id;
  std::int32_t generation_id = 0;
  std::string member_id;
  std::optional<std::string> group_instance_id;

  WEIR_MESSAGE(HeartbeatRequest,
               valid(0, 4).flexible(4),
               WEIR_FIELD(group_id, since(0)),
               WEIR_FIELD(generation_id, since(0)),
               WEIR_FIELD(member_id, since(0)),
               WEIR_FIELD(group_instance_id, since(3).nullable(3)))
};

struct HeartbeatResponse {
  static constexpr ApiKey kApiKey = ApiKey::kHeartbeat;

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;

  WEIR_MESSAGE(HeartbeatResponse,
               valid(0, 4).flexible(4),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(error_code, since(0)))
};

}  // namespace weir::protocol
