// All messages we have tables of, for those who must find one by its number: frames, fuzzing, the check against Kafka.
#pragma once

#include <cstdint>
#include <span>

#include "protocol/api_key.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct ApiTables {
  ApiKey key;
  const Table& (*request)();
  const Table& (*response)();
};

/// In ascending order of key.
std::span<const ApiTables> api_tables();
/// Null for an API we have no table of.
const ApiTables* find_api(std::int16_t key);

/// Headers, on-disk records, consumer protocol: what is not an API.
std::span<const Table* const> other_tables();

}  // namespace weir::protocol
