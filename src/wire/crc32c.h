// CRC-32C (Castagnoli), the checksum of record batches: RFC 3720 B.4, reflected polynomial 0x82F63B78.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace weir::wire {

/// Checksum of `bytes`; to go on over pieces, pass the result so far. Uses the processor's instruction (SSE 4.2) when
/// it has one. Any thread.
std::uint32_t crc32c(ByteView bytes, std::uint32_t so_far = 0);

/// The same by table, for processors without the instruction and for tests.
std::uint32_t crc32c_software(ByteView bytes, std::uint32_t so_far = 0);

}  // namespace weir::wire
