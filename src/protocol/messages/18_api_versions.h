// ApiVersions: which APIs and versions a broker serves. The response header is always version 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct ApiVersionsResponse;

struct ApiVersionsRequest {
  static constexpr ApiKey kApiKey = ApiKey::kApiVersions;
  using Response = ApiVersionsResponse;

  std::string client_software_name;
  std::string client_software_version;

  WEIR_MESSAGE(ApiVersionsRequest,
               valid(0, 4).flexible(3),
               WEIR_FIELD(client_software_name, since(3)),
               WEIR_FIELD(client_software_version, since(3)))
};

struct ApiVersionsResponse {
  static constexpr ApiKey kApiKey = ApiKey::kApiVersions;

  struct ApiVersion {
    std::int16_t api_key = 0;
    std::int16_t min_version = 0;
    std::int16_t max_version = 0;

    WEIR_STRUCT(ApiVersion,
                WEIR_FIELD(api_key, since(0)),
                WEIR_FIELD(min_version, since(0)),
                WEIR_FIELD(max_version, since(0)))
  };

  struct SupportedFeatureKey {
    std::string name;
    std::int16_t min_version = 0;
    std::int16_t max_version = 0;

    WEIR_STRUCT(SupportedFeatureKey,
                WEIR_FIELD(name, since(3)),
                WEIR_FIELD(min_version, since(3)),
                WEIR_FIELD(max_version, since(3)))
  };

  struct FinalizedFeatureKey {
    std::string name;
    std::int16_t max_version_level = 0;
    std::int16_t min_version_level = 0;

    WEIR_STRUCT(FinalizedFeatureKey,
                WEIR_FIELD(name, since(3)),
                WEIR_FIELD(max_version_level, since(3)),
                WEIR_FIELD(min_version_level, since(3)))
  };

  ErrorCode error_code = ErrorCode::kNone;
  std::vector<ApiVersion> api_keys;
  std::int32_t throttle_time_ms = 0;
  std::vector<SupportedFeatureKey> supported_features;
  std::int64_t finalized_features_epoch = -1;
  std::vector<FinalizedFeatureKey> finalized_features;
  bool zk_migration_ready = false;

  WEIR_MESSAGE(ApiVersionsResponse,
               valid(0, 4).flexible(3),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(api_keys, since(0)),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(supported_features, since(3).tagged(0)),
               WEIR_FIELD(finalized_features_epoch, since(3).tagged(1)),
               WEIR_FIELD(finalized_features, since(3).tagged(2)),
               WEIR_FIELD(zk_migration_ready, since(3).tagged(3)))
};

}  // namespace weir::protocol
