// AlterClientQuotas: set and remove quotas of users, client ids and addresses.
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

struct AlterClientQuotasResponse;

struct AlterClientQuotasRequest {
  static constexpr ApiKey kApiKey = ApiKey::kAlterClientQuotas;
  using Response = AlterClientQuotasResponse;

  struct EntityData {
    std::string entity_type;
    std::optional<std::string> entity_name;

    WEIR_STRUCT(EntityData, WEIR_FIELD(entity_type, since(0)), WEIR_FIELD(entity_name, since(0).nullable(0)))
  };

  struct OpData {
    std::string key;
    double value = 0;
    bool remove = false;

    WEIR_STRUCT(OpData, WEIR_FIELD(key, since(0)), WEIR_FIELD(value, since(0)), WEIR_FIELD(remove, since(0)))
  };

  struct EntryData {
    std::vector<EntityData> entity;
    std::vector<OpData> ops;

    WEIR_STRUCT(EntryData, WEIR_FIELD(entity, since(0)), WEIR_FIELD(ops, since(0)))
  };

  std::vector<EntryData> entries;
  bool validate_only = false;

  WEIR_MESSAGE(AlterClientQuotasRequest,
               valid(0, 1).flexible(1),
               WEIR_FIELD(entries, since(0)),
               WEIR_FIELD(validate_only, since(0)))
};

struct AlterClientQuotasResponse {
  static constexpr ApiKey kApiKey = ApiKey::kAlterClientQuotas;

  struct EntityData {
    std::string entity_type;
    std::optional<std::string> entity_name;

    WEIR_STRUCT(EntityData, WEIR_FIELD(entity_type, since(0)), WEIR_FIELD(entity_name, since(0).nullable(0)))
  };

  struct EntryData {
    ErrorCode error_code = ErrorCode::kNone;
    std::optional<std::string> error_message;
    std::vector<EntityData> entity;

    WEIR_STRUCT(EntryData,
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(error_message, since(0).nullable(0)),
                WEIR_FIELD(entity, since(0)))
  };

  std::int32_t throttle_time_ms = 0;
  std::vector<EntryData> entries;

  WEIR_MESSAGE(AlterClientQuotasResponse,
               valid(0, 1).flexible(1),
               WEIR_FIELD(throttle_time_ms, since(0)),
               WEIR_FIELD(entries, since(0)))
};

}  // namespace weir::protocol
