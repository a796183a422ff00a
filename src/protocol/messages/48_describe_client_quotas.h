// DescribeClientQuotas: the quotas that match a filter.
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

struct DescribeClientQuotasResponse;

struct DescribeClientQuotasRequest {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeClientQuotas;
  using Response = DescribeClientQuotasResponse;

  struct ComponentData {
    std::string entity_type;
    std::int8_t match_type = 0;
    std::optional<std::string> match;

    WEIR_STRUCT(ComponentData,
                WEIR_FIELD(entity_type, since(0)),
                WEIR_FIELD(match_type, since(0)),
                WEIR_FIELD(match, since(0).nullable(0)))
  };

  std::vector<ComponentData> components;
  bool strict = false;

  WEIR_MESSAGE(DescribeClientQuotasRequest,
               valid(0, 1).flexible(1),
               WEIR_FIELD(components, since(0)),
               WEIR_FIELD(strict, since(0)))
};

struct DescribeClientQuotasResponse {
  static constexpr ApiKey kApiKey = ApiKey::kDescribeClientQuotas;

  struct EntityData {
    std::string entity_type;
    std::optional<std::string> entity_name;

    WEIR_STRUCT(EntityData, WEIR_FIELD(entity_type, since(0)), WEIR_FIELD(entity_name, since(0).nullable(0)))
  };

  struct ValueData {
    std::string key;
    double value = 0;

    WEIR_STRUCT(ValueData, WEIR_FIELD(key, since(0)), WEIR_FIELD(value, since(0)))
  };

  struct EntryData {
    std::vector<EntityData> entity;
    std::vector<ValueData> values;

    WEIR_STRUCT(EntryData, WEIR_FIELD(entity, since(0)), WEIR_FIELD(values, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::optional<std::string> error_message;
  std::optional<std::vector<EntryData>> entries;

  WEIR_MESSAGE(DescribeClientQuotasResponse,
               valid(0, 1).flexible(1),
               WEIR_FIELD(throttle_time_ms, since(0)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(error_message, since(0).nullable(0)),
               WEIR_FIELD(entries, since(0).nullable(0)))
};

}  // namespace weir::protocol
