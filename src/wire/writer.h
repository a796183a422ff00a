// Writes Kafka's primitives. The mirror of wire/reader.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "weir/types.h"
#include "wire/reader.h"
#include "wire/uuid.h"

namespace weir::wire {

/// Appends to a buffer of its own. Owned by one thread. Kafka has no string longer than 32767 bytes: the rest is cut
/// off, so that an error message which quotes a peer cannot break a reply.
class Writer {
 public:
  Writer() = default;
  /// `expected`: bytes reserved at once.
  explicit Writer(Bytes expected) { out_.reserve(expected); }

  void int8(std::int8_t v) { big_endian<1>(static_cast<std::uint8_t>(v)); }
  void int16(std::int16_t v) { big_endian<2>(static_cast<std::uint16_t>(v)); }
  void uint16(std::uint16_t v) { big_endian<2>(v); }
  void int32(std::int32_t v) { big_endian<4>(static_cast<std::uint32_t>(v)); }
  void uint32(std::uint32_t v) { big_endian<4>(v); }
  void int64(std::int64_t v) { big_endian<8>(static_cast<std::uint64_t>(v)); }
  void float64(double v);
  void boolean(bool v) { int8(v ? 1 : 0); }
  void varuint(std::uint64_t v);
  void varint(std::int32_t v) { varlong(v); }
  void varlong(std::int64_t v);
  void uuid(const Uuid& id);
  /// The bytes alone, without a length.
  void raw(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  void nullable_string(std::optional<std::string_view> text, Form form);
  void string(std::string_view text, Form form) { nullable_string(text, form); }
  /// Lengths of bytes and arrays; nothing means null.
  void nullable_length(std::optional<Bytes> length, Form form);

  Bytes size() const { return out_.size(); }
  /// For lengths and checksums that are known only later: `position` + the value must lie within what was written.
  void patch_int32(Bytes position, std::int32_t v);
  ByteView view() const { return out_; }
  ByteBuffer take() { return std::move(out_); }

 private:
  template <int Size>
  void big_endian(std::uint64_t v) {
    const Bytes start = out_.size();
    out_.resize(start + Size);
    for (int i = Size; i-- > 0; v >>= 8) out_[start + static_cast<Bytes>(i)] = static_cast<std::byte>(v & 0xff);
  }

  ByteBuffer out_;
};

/// Bytes that varuint(), varint() and varlong() take.
constexpr Bytes varuint_size(std::uint64_t v) {
  Bytes n = 1;
  while (v >= 0x80) v >>= 7, ++n;
  return n;
}
constexpr std::uint64_t zigzag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
constexpr Bytes varlong_size(std::int64_t v) { return varuint_size(zigzag(v)); }

}  // namespace weir::wire
