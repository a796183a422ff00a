// DescribeGroups: state and members of classic groups.
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

struct DescribeGroupsResponse;

struct DescribeGroupsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeGroups;
  using Response = DescribeGroupsResponse;

  std::vector<std::string> groups;
  bool include_authorized_operations = false;

  WEIR_MESSAGE(DescribeGroupsRequest,
               valid(0, 6).flexible(5),
               WEIR_FIELD(groups, since(0)),
               WEIR_FIELD(include_authorized_operations, since(3)))
};

struct DescribeGroupsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeGroups;

  struct DescribedGroupMember {
    std::string member_id;
    std::optional<std::string> group_instance_id;
    std::string client_id;
    std::string client_host;
    ByteBuffer member_metadata;
    ByteBuffer member_assignment;

    WEIR_STRUCT(DescribedGroupMember,
                WEIR_FIELD(member_id, since(0)),
                WEIR_FIELD(group_instance_id, since(4).nullable(4)),
                WEIR_FIELD(client_id, since(0)),
                WEIR_FIELD(client_host, since(0)),
                WEIR_FIELD(member_metadata, since(0)),
                WEIR_FIELD(member_assignment, since(0)))
  };

  struct DescribedGroup {
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;
    std::string group_id;
    std::string group_state;
    std::string protocol_type;
    std::string protocol_data;
    std::vector<DescribedGroupMember> members;
    std::int32_t authorized_operations = INT32_MIN;

    WEIR_STRUCT(DescribedGroup,
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(error_message, since(6).nullable(6)),
                WEIR_FIELD(group_id, since(0)),
                WEIR_FIELD(group_state, since(0)),
                WEIR_FIELD(protocol_type, since(0)),
                WEIR_FIELD(protocol_data, since(0)),
                WEIR_FIELD(members, since(0)),
                WEIR_FIELD(authorized_operations, since(3)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<DescribedGroup> groups;

  WEIR_MESSAGE(DescribeGroupsResponse,
               valid(0, 6).flexible(5),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(groups, since(0)))
};

}  // namespace weir::protocol
