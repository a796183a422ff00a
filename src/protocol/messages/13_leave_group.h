// LeaveGroup: members leave a classic group. One member up to version 2, many from version 3.
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

struct LeaveGroupResponse;

struct LeaveGroupRequest {
  static constexpr ApiKey kApiKey = ApiKey::kLeaveGroup;
  using Response = LeaveGroupResponse;

  struct MemberIdentity {
    std::string member_id;
    std::optional<std::string> group_instance_id;
    std::optional<std::string> reason;

    WEIR_STRUCT(MemberIdentity,
                WEIR_FIELD(member_id, since(3)),
                WEIR_FIELD(group_instance_id, since(3).nullable(3)),
                WEIR_FIELD(reason, since(5).nullable(5)))
  };

  std::string group_id;
  std::string member_id;
  std::vector<MemberIdentity> members;

  WEIR_MESSAGE(LeaveGroupRequest,
               valid(0, 5).flexible(4),
               WEIR_FIELD(group_id, since(0)),
               WEIR_FIELD(member_id, between(0, 2)),
               WEIR_FIELD(members, since(3)))
};

struct LeaveGroupResponse {
  static constexpr ApiKey kApiKey = ApiKey::kLeaveGroup;

  struct MemberResponse {
    std::string member_id;
    std::optional<std::string> group_instance_id;
    ErrorCode error_code = ErrorCode::kNone;

    WEIR_STRUCT(MemberResponse,
                WEIR_FIELD(member_id, since(3)),
                WEIR_FIELD(group_instance_id, since(3).nullable(3)),
                WEIR_FIELD(error_code, since(3)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::vector<MemberResponse> members;

  WEIR_MESSAGE(LeaveGroupResponse,
               valid(0, 5).flexible(4),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(members, since(3)))
};

}  // namespace weir::protocol
