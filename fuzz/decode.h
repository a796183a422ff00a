// What both fuzz programs run on an input.
#pragma once

#include "base/bytes.h"

namespace weir::fuzz {

/// The first byte says what the rest is: a message of some table (then a byte of version), a request frame, a record
/// batch, a records field, compressed data. Nothing may crash, allocate beyond reason, or decode to what does not
/// encode back.
void decode_anything(ByteView input);

/// Inputs that decode, to be damaged: `choice` picks one, the same for the same number.
ByteBuffer valid_input(std::uint64_t choice);

}  // namespace weir::fuzz
