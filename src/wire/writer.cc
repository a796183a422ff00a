#include "wire/writer.h"

#include <bit>

#include "base/assert.h"

namespace weir::wire {

void Writer::float64(double v) { big_endian<8>(std::bit_cast<std::uint64_t>(v)); }

void Writer::varuint(std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out_.push_back(static_cast<std::byte>(v | 0x80));
  out_.push_back(static_cast<std::byte>(v));
}

// A 32-bit value has the same zigzag varint whether it is widened before or after, so varint() shares this.
void Writer::varlong(std::int64_t v) { varuint(zigzag(v)); }

void Writer::uuid(const Uuid& id) { raw(std::as_bytes(std::span(id.bytes))); }

void Writer::nullable_string(std::optional<std::string_view> text, Form form) {
  if (text) text = text->substr(0, INT16_MAX);
  if (form == Form::kCompact) {
    varuint(text ? text->size() + 1 : 0);
  } else {
    int16(text ? static_cast<std::int16_t>(text->size()) : std::int16_t{-1});
  }
  if (text) raw(as_bytes(*text));
}

void Writer::nullable_length(std::optional<Bytes> length, Form form) {
  if (length) WEIR_ASSERT(*length <= INT32_MAX);
  if (form == Form::kCompact) {
    varuint(length ? *length + 1 : 0);
  } else {
    int32(length ? static_cast<std::int32_t>(*length) : -1);
  }
}

void Writer::patch_int32(Bytes position, std::int32_t v) {
  WEIR_ASSERT(position + 4 <= out_.size());
  auto rest = static_cast<std::uint32_t>(v);
  for (Bytes i = 4; i-- > 0; rest >>= 8) out_[position + i] = static_cast<std::byte>(rest & 0xff);
}

}  // namespace weir::wire
