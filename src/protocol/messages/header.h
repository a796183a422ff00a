// What stands before every request and response body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/field_table.h"

namespace weir::protocol {

struct RequestHeader {
  std::int16_t request_api_key = 0;
  std::int16_t request_api_version = 0;
  std::int32_t correlation_id = 0;
  std::optional<std::string> client_id;

  WEIR_MESSAGE(RequestHeader,
               valid(1, 2).flexible(2),
               WEIR_FIELD(request_api_key, since(0)),
               WEIR_FIELD(request_api_version, since(0)),
               WEIR_FIELD(correlation_id, since(0)),
               WEIR_FIELD(client_id, since(1).nullable(1).never_compact()))
};

struct ResponseHeader {
  std::int32_t correlation_id = 0;

  WEIR_MESSAGE(ResponseHeader, valid(0, 1).flexible(1), WEIR_FIELD(correlation_id, since(0)))
};

}  // namespace weir::protocol
