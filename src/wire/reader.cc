#include "wire/reader.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace weir::wire {

void Reader::fail(std::string_view reason) {
  if (!ok()) return;
  error_ = fmt::format("{} at byte {} of {}", reason, position_, bytes_.size());
  bytes_ = {};
  position_ = 0;
}

void Reader::cut_short(std::uint64_t wanted) {
  fail(fmt::format("{} bytes are wanted but {} are left", wanted, remaining()));
}

Result<void> Reader::result() const {
  if (ok()) return {};
  return weir::fail(ErrorKind::kInvalid, error_);
}

double Reader::float64() { return std::bit_cast<double>(big_endian<8>()); }

std::uint64_t Reader::leb128(int max_bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < max_bytes; ++i) {
    if (remaining() == 0) return cut_short(1), 0;
    const auto byte = std::to_integer<std::uint64_t>(bytes_[position_++]);
    value |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) return value;
  }
  fail("a varint does not end");
  return 0;
}

std::uint32_t Reader::varuint() {
  const std::uint64_t value = leb128(5);
  if (value > UINT32_MAX) return fail("a varint exceeds 32 bits"), 0;
  return static_cast<std::uint32_t>(value);
}

std::int32_t Reader::varint() {
  const std::uint32_t raw = varuint();
  return static_cast<std::int32_t>(raw >> 1) ^ -static_cast<std::int32_t>(raw & 1);
}

std::int64_t Reader::varlong() {
  const std::uint64_t raw = leb128(10);
  return static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1);
}

Uuid Reader::uuid() {
  Uuid id;
  const ByteView raw = view(id.bytes.size());
  if (!raw.empty()) std::memcpy(id.bytes.data(), raw.data(), raw.size());
  return id;
}

ByteView Reader::view(Bytes length) {
  if (remaining() < length) return cut_short(length), ByteView();
  const ByteView part = bytes_.subspan(position_, length);
  position_ += length;
  return part;
}

SharedBytes Reader::shared(Bytes length) {
  const Bytes start = position_;
  const ByteView part = view(length);
  if (part.empty()) return {};
  return owner_.empty() ? SharedBytes(to_buffer(part)) : owner_.slice(start, length);
}

std::optional<Bytes> Reader::nullable_bytes_length(Form form) {
  const std::int64_t length = form == Form::kCompact ? std::int64_t{varuint()} - 1 : int32();
  if (!ok()) return 0;
  if (length == -1) return std::nullopt;
  if (length < 0) return fail("a negative length"), 0;
  if (static_cast<std::uint64_t>(length) > remaining()) return cut_short(static_cast<std::uint64_t>(length)), 0;
  return static_cast<Bytes>(length);
}

std::optional<std::string_view> Reader::nullable_string(Form form) {
  std::int64_t length = form == Form::kCompact ? std::int64_t{varuint()} - 1 : int16();
  if (!ok()) return std::string_view();
  if (length == -1) return std::nullopt;
  if (length < 0 || length > INT16_MAX) return fail("a string with a length outside 0 to 32767"), std::string_view();
  return as_text(view(static_cast<Bytes>(length)));
}

std::string_view Reader::string(Form form) {
  const auto text = nullable_string(form);
  if (!text) fail("null where a string must be");
  return text.value_or(std::string_view());
}

std::optional<std::uint32_t> Reader::nullable_array_length(Form form) {
  const auto count = nullable_bytes_length(form);  // an element takes a byte at least, so the same check holds
  return count ? std::optional(static_cast<std::uint32_t>(*count)) : std::nullopt;
}

}  // namespace weir::wire
