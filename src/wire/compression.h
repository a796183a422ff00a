// The codecs of record batches, each in the framing Kafka's clients use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "weir/types.h"

namespace weir::wire {

/// Numbers as in the lowest three bits of a batch's attributes.
enum class Codec : std::uint8_t { kNone = 0, kGzip = 1, kSnappy = 2, kLz4 = 3, kZstd = 4 };

/// Kafka's names: "none", "gzip", "snappy", "lz4", "zstd".
std::string_view name(Codec codec);
std::optional<Codec> parse_codec(std::string_view name);

/// Compresses at the codec's default level. Gzip members, xerial snappy blocks, an LZ4 frame, a zstd frame. Any thread.
ByteBuffer compress(Codec codec, ByteView plain);

/// Decompresses, also what is split over several frames. Snappy with or without xerial's blocks. Memory grows with what
/// comes out and never beyond `max` (at most 1 GiB), whatever the compressed bytes claim: more is ErrorKind::kNoSpace,
/// damage kInvalid.
Result<ByteBuffer> decompress(Codec codec, ByteView packed, Bytes max);

}  // namespace weir::wire
