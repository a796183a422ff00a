// Random messages, for property tests and fuzzing.
#pragma once

#include <cstdint>
#include <random>

#include "protocol/field_table.h"

namespace weir::protocol {

/// Fills the fields that `version` has with random values: extremes, nulls where allowed, short arrays and strings.
/// Fields the version lacks keep their defaults, so that the message survives encoding and decoding.
void randomize(const Table& table, void* message, int version, std::mt19937_64& random);

}  // namespace weir::protocol
