// Reads Kafka's primitives from bytes nobody has checked yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "weir/types.h"
#include "wire/uuid.h"

namespace weir::wire {

/// How lengths are written: int16/int32 as in old versions, or an unsigned varint of length + 1 as in flexible
/// versions.
enum class Form : bool { kClassic, kCompact };

/// A cursor over bytes. The first thing that does not fit stops it: every later read returns zero or empty,
/// `remaining()` is 0, and `ok()` is false, so a decoder checks once at its end. Nothing is allocated but what lies in
/// the bytes. Owned by one thread. Views it returns live as long as the bytes do.
class Reader {
 public:
  explicit Reader(ByteView bytes) : bytes_(bytes) {}
  /// As above, and `shared()` returns slices of `bytes` instead of copies.
  explicit Reader(SharedBytes bytes) : bytes_(bytes.view()), owner_(std::move(bytes)) {}

  std::int8_t int8() { return static_cast<std::int8_t>(big_endian<1>()); }
  std::int16_t int16() { return static_cast<std::int16_t>(big_endian<2>()); }
  std::uint16_t uint16() { return static_cast<std::uint16_t>(big_endian<2>()); }
  std::int32_t int32() { return static_cast<std::int32_t>(big_endian<4>()); }
  std::uint32_t uint32() { return static_cast<std::uint32_t>(big_endian<4>()); }
  std::int64_t int64() { return static_cast<std::int64_t>(big_endian<8>()); }
  double float64();
  bool boolean() { return int8() != 0; }
  /// Unsigned LEB128, at most 5 bytes.
  std::uint32_t varuint();
  /// Zigzag varints: at most 5 and 10 bytes.
  std::int32_t varint();
  std::int64_t varlong();
  Uuid uuid();

  /// The next `length` bytes; fails when there are fewer.
  ByteView view(Bytes length);
  SharedBytes shared(Bytes length);
  void skip(Bytes length) { view(length); }

  /// Strings (int16 length), bytes (int32 length) and array counts (int32), or their compact forms. Null is nothing. An
  /// array count is never more than the bytes that are left, so reserving that many elements of one byte is safe, no
  /// more.
  std::optional<std::string_view> nullable_string(Form form);
  std::string_view string(Form form);
  std::optional<Bytes> nullable_bytes_length(Form form);
  std::optional<std::uint32_t> nullable_array_length(Form form);

  bool ok() const { return error_.empty(); }
  Bytes position() const { return position_; }
  Bytes remaining() const { return bytes_.size() - position_; }
  /// Stops the reader with a reason of the caller's. Only the first reason is kept; the position is added to it.
  void fail(std::string_view reason);
  /// Success, or the first failure as ErrorKind::kInvalid.
  Result<void> result() const;

 private:
  template <int Size>
  std::uint64_t big_endian() {
    if (remaining() < Size) return cut_short(Size), 0;
    std::uint64_t value = 0;
    for (int i = 0; i < Size; ++i) value = (value << 8) | std::to_integer<std::uint64_t>(bytes_[position_ + i]);
    position_ += Size;
    return value;
  }
  std::uint64_t leb128(int max_bytes);
  void cut_short(std::uint64_t wanted);

  ByteView bytes_;
  SharedBytes owner_;
  Bytes position_ = 0;
  std::string error_;
};

}  // namespace weir::wire
