// SyncGroup: the leader hands in the assignment, every member gets its part.
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

namespace weir::protocol {

struct SyncGroupResponse;

struct SyncGroupRequest {
  static constexpr ApiKey kApiKey = ApiKey::kSyncGroup;
  using Response = SyncGroupResponse;

  struct SyncGroupRequestAssignment {
    std::string member_id;
    ByteBuffer assignment;

    WEIR_STRUCT(SyncGroupRequestAssignment, WEIR_FIELD(member_id, since(0)), WEIR_FIELD(assignment, since(0)))
  };

  std::string group_id;
  std::int32_t generation_id = 0;
  std::string member_id;
  std::optional<std::string> group_instance_id;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol_name;
  std::vector<SyncGroupRequestAssignment> assignments;

  WEIR_MESSAGE(SyncGroupRequest,
               valid(0, 5).flexible(4),
               WEIR_FIELD(group_id, since(0)),
               WEIR_FIELD(generation_id, since(0)),
               WEIR_FIELD(member_id, since(0)),
               WEIR_FIELD(group_instance_id, since(3).nullable(3)),
               WEIR_FIELD(protocol_type, since(5).nullable(5)),
               WEIR_FIELD(protocol_name, since(5).nullable(5)),
               WEIR_FIELD(assignments, since(0)))
};

struct SyncGroupResponse {
  static constexpr ApiKey kApiKey = ApiKey::kSyncGroup;

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol_name;
  ByteBuffer assignment;

  WEIR_MESSAGE(SyncGroupResponse,
               valid(0, 5).flexible(4),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(protocol_type, since(5).nullable(5)),
               WEIR_FIELD(protocol_name, since(5).nullable(5)),
               WEIR_FIELD(assignment, since(0)))
};

}  // namespace weir::protocol
