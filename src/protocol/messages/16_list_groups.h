// ListGroups: all groups of a broker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct ListGroupsResponse;

struct ListGroupsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kListGroups;
  using Response = ListGroupsResponse;

  std::vector<std::string> states_filter;
  std::vector<std::string> types_filter;

  WEIR_MESSAGE(ListGroupsRequest,
               valid(0, 5).flexible(3),
               WEIR_FIELD(states_filter, since(4)),
               WEIR_FIELD(types_filter, since(5)))
};

struct ListGroupsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kListGroups;

  struct ListedGroup {
    std::string group_id;
    std::string protocol_type;
    std::string group_state;
    std::string group_type;

    WEIR_STRUCT(ListedGroup,
                WEIR_FIELD(group_id, since(0)),
                WEIR_FIELD(protocol_type, since(0)),
                WEIR_FIELD(group_state, since(4)),
                WEIR_FIELD(group_type, since(5)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::vector<ListedGroup> groups;

  WEIR_MESSAGE(ListGroupsResponse,
               valid(0, 5).flexible(3),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(groups, since(0)))
};

}  // namespace weir::protocol
