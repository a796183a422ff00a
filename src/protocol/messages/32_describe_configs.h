// DescribeConfigs: the settings in force, and where they come from.
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

struct DescribeConfigsResponse;

struct DescribeConfigsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeConfigs;
  using Response = DescribeConfigsResponse;

  struct DescribeConfigsResource {
    std::int8_t resource_type = 0;
    std::string resource_name;
    std::optional<std::vector<std::string>> configuration_keys;

    WEIR_STRUCT(DescribeConfigsResource,
                WEIR_FIELD(resource_type, since(0)),
                WEIR_FIELD(resource_name, since(0)),
                WEIR_FIELD(configuration_keys, since(0).nullable(0)))
  };

  std::vector<DescribeConfigsResource> resources;
  bool include_synonyms = false;
  bool include_documentation = false;

  WEIR_MESSAGE(DescribeConfigsRequest,
               valid(1, 4).flexible(4),
               WEIR_FIELD(resources, since(0)),
               WEIR_FIELD(include_synonyms, since(1)),
               WEIR_FIELD(include_documentation, since(3)))
};

struct DescribeConfigsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeConfigs;

  struct DescribeConfigsSynonym {
    std::string name;
    std::optional<std::string> value;
    std::int8_t source = 0;

    WEIR_STRUCT(DescribeConfigsSynonym,
                WEIR_FIELD(name, since(1)),
                WEIR_FIELD(value, since(1).nullable(0)),
                WEIR_FIELD(source, since(1)))
  };

  struct DescribeConfigsResourceResult {
    std::string name;
    std::optional<std::string> value;
    bool read_only = false;
    std::int8_t config_source = -1;
    bool is_sensitive = false;
    std::vector<DescribeConfigsSynonym> synonyms;
    std::int8_t config_type = 0;
    std::optional<std::string> documentation;

    WEIR_STRUCT(DescribeConfigsResourceResult,
                WEIR_FIELD(name, since(0)),
                WEIR_FIELD(value, since(0).nullable(0)),
                WEIR_FIELD(read_only, since(0)),
                WEIR_FIELD(config_source, since(1)),
                WEIR_FIELD(is_sensitive, since(0)),
                WEIR_FIELD(synonyms, since(1)),
                WEIR_FIELD(config_type, since(3)),
                WEIR_FIELD(documentation, since(3).nullable(0)))
  };

  struct DescribeConfigsResult {
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;
    std::int8_t resource_type = 0;
    std::string resource_name;
    std::vector<DescribeConfigsResourceResult> configs;

    WEIR_STRUCT(DescribeConfigsResult,
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(error_message, since(0).nullable(0)),
                WEIR_FIELD(resource_type, since(0)),
                WEIR_FIELD(resource_name, since(0)),
                WEIR_FIELD(configs, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<DescribeConfigsResult> results;

  WEIR_MESSAGE(DescribeConfigsResponse,
               valid(1, 4).flexible(4),
               WEIR_FIELD(throttle_time_ms, since(0)),
               WEIR_FIELD(results, since(0)))
};

}  // namespace weir::protocol
