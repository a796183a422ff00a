// IncrementalAlterConfigs: set, delete, append to or subtract from single settings.
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

struct IncrementalAlterConfigsResponse;

struct IncrementalAlterConfigsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kIncrementalAlterConfigs;
  using Response = IncrementalAlterConfigsResponse;

  struct AlterableConfig {
    std::string name;
    std::int8_t config_operation = 0;
    std::optional<std::string> value;

    WEIR_STRUCT(AlterableConfig,
                WEIR_FIELD(name, since(0)),
                WEIR_FIELD(config_operation, since(0)),
                WEIR_FIELD(value, since(0).nullable(0)))
  };

  struct AlterConfigsResource {
    std::int8_t resource_type = 0;
    std::string resource_name;
    std::vector<AlterableConfig> configs;

    WEIR_STRUCT(AlterConfigsResource,
                WEIR_FIELD(resource_type, since(0)),
                WEIR_FIELD(resource_name, since(0)),
                WEIR_FIELD(configs, since(0)))
  };

  std::vector<AlterConfigsResource> resources;
  bool validate_only = false;

  WEIR_MESSAGE(IncrementalAlterConfigsRequest,
               valid(0, 1).flexible(1),
               WEIR_FIELD(resources, since(0)),
               WEIR_FIELD(validate_only, since(0)))
};

struct IncrementalAlterConfigsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kIncrementalAlterConfigs;

  struct AlterConfigsResourceResponse {
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;
    std::int8_t resource_type = 0;
    std::string resource_name;

    WEIR_STRUCT(AlterConfigsResourceResponse,
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(error_message, since(0).nullable(0)),
                WEIR_FIELD(resource_type, since(0)),
                WEIR_FIELD(resource_name, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<AlterConfigsResourceResponse> responses;

  WEIR_MESSAGE(IncrementalAlterConfigsResponse,
               valid(0, 1).flexible(1),
               WEIR_FIELD(throttle_time_ms, since(0)),
               WEIR_FIELD(responses, since(0)))
};

}  // namespace weir::protocol
