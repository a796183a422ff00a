// JoinGroup: become a member of a classic group; answered when the rebalance is over.
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

struct JoinGroupResponse;

struct JoinGroupRequest {
  static constexpr ApiKey kApiKey = ApiKey::kJoinGroup;
  using Response = JoinGroupResponse;

  struct JoinGroupRequestProtocol {
    std::string name;
    ByteBuffer metadata;

    WEIR_STRUCT(JoinGroupRequestProtocol, WEIR_FIELD(name, since(0)), WEIR_FIELD(metadata, since(0)))
  };

  std::string group_id;
  std::int32_t session_timeout_ms = 0;
  std::int32_t rebalance_timeout_ms = -1;
  std::string member_id;
  std::optional<std::string> group_instance_id;
  std::string protocol_type;
  std::vector<JoinGroupRequestProtocol> protocols;
  std::optional<std::string> reason;

  WEIR_MESSAGE(JoinGroupRequest,
               valid(0, 9).flexible(6),
               WEIR_FIELD(group_id, since(0)),
               WEIR_FIELD(session_timeout_ms, since(0)),
               WEIR_FIELD(rebalance_timeout_ms, since(1)),
               WEIR_FIELD(member_id, since(0)),
               WEIR_FIELD(group_instance_id, since(5).nullable(5)),
               WEIR_FIELD(protocol_type, since(0)),
               WEIR_FIELD(protocols, since(0)),
               WEIR_FIELD(reason, since(8).nullable(8)))
};

struct JoinGroupResponse {
  static constexpr ApiKey kApiKey = ApiKey::kJoinGroup;

  struct JoinGroupResponseMember {
    std::string member_id;
    std::optional<std::string> group_instance_id;
    ByteBuffer metadata;

    WEIR_STRUCT(JoinGroupResponseMember,
                WEIR_FIELD(member_id, since(0)),
                WEIR_FIELD(group_instance_id, since(5).nullable(5)),
                WEIR_FIELD(metadata, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::int32_t generation_id = -1;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol_name;
  std::string leader;
  bool skip_assignment = false;
  std::string member_id;
  std::vector<JoinGroupResponseMember> members;

  WEIR_MESSAGE(JoinGroupResponse,
               valid(0, 9).flexible(6),
               WEIR_FIELD(throttle_time_ms, since(2)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(generation_id, since(0)),
               WEIR_FIELD(protocol_type, since(7).nullable(7)),
               WEIR_FIELD(protocol_name, since(0).nullable(7)),
               WEIR_FIELD(leader, since(0)),
               WEIR_FIELD(skip_assignment, since(9)),
               WEIR_FIELD(member_id, since(0)),
               WEIR_FIELD(members, since(0)))
};

}  // namespace weir::protocol
