#include "protocol/codec.h"

#include <fmt/format.h>

#include <cstring>

#include "base/assert.h"
#include "wire/writer.h"

namespace weir::protocol {
namespace {

using wire::Form;
using wire::Reader;
using wire::Writer;

template <typename T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}
template <typename T>
T& as(void* value) {
  return *static_cast<T*>(value);
}
/// An int16 may be an ErrorCode, which the language calls another type.
std::int16_t load_int16(const void* value) {
  std::int16_t number;
  std::memcpy(&number, value, sizeof number);
  return number;
}
const void* at(const void* base, std::size_t offset) { return static_cast<const std::byte*>(base) + offset; }
void* at(void* base, std::size_t offset) { return static_cast<std::byte*>(base) + offset; }

/// The value inside a std::optional member, or the member itself; null when there is none.
const void* value_of(const Field& field, const void* member) {
  return field.optional ? field.optional->get(member) : member;
}

// ---- Equality
// --------------------------------------------------------------------------------------------------------

bool equal_payloads(const Payload& a, const Payload& b) {
  if (a.size() != b.size()) return false;
  for (const Payload* side : {&a, &b}) {
    for (const Payload::Piece& piece : side->pieces()) {
      if (!std::holds_alternative<SharedBytes>(piece)) return false;
    }
  }
  return a.flatten().value() == b.flatten().value();
}

bool equal_value(const Field& field, const void* a, const void* b) {
  switch (field.type) {
    case FieldType::kBool: return as<bool>(a) == as<bool>(b);
    case FieldType::kInt8: return as<std::int8_t>(a) == as<std::int8_t>(b);
    case FieldType::kInt16: return load_int16(a) == load_int16(b);
    case FieldType::kInt32:
    case FieldType::kUint32: return as<std::uint32_t>(a) == as<std::uint32_t>(b);
    case FieldType::kInt64: return as<std::int64_t>(a) == as<std::int64_t>(b);
    case FieldType::kFloat64: return std::memcmp(a, b, sizeof(double)) == 0;  // bit for bit, so that NaN equals itself
    case FieldType::kUuid: return as<wire::Uuid>(a) == as<wire::Uuid>(b);
    case FieldType::kString: return as<std::string>(a) == as<std::string>(b);
    case FieldType::kBytes: return as<ByteBuffer>(a) == as<ByteBuffer>(b);
    case FieldType::kRecords: return as_text(as<SharedBytes>(a).view()) == as_text(as<SharedBytes>(b).view());
    case FieldType::kRecordsPayload: return equal_payloads(as<Payload>(a), as<Payload>(b));
    case FieldType::kStruct: return equal(field.nested(), a, b);
  }
  return false;
}

bool equal_member(const Field& field, const void* a, const void* b) {
  a = value_of(field, a);
  b = value_of(field, b);
  if (a == nullptr || b == nullptr) return a == b;
  if (field.array == nullptr) return equal_value(field, a, b);
  const std::size_t count = field.array->size(a);
  if (count != field.array->size(b)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t offset = i * field.array->stride;
    if (!equal_value(field, at(field.array->data(a), offset), at(field.array->data(b), offset))) return false;
  }
  return true;
}

// ---- Decoding
// --------------------------------------------------------------------------------------------------------

class Decoder {
 public:
  Decoder(int version, bool flexible, Reader& in, Bytes& budget)
      : version_(version), flexible_(flexible), in_(in), budget_(budget) {}

  void structure(const Table& table, void* base) {
    for (const Field& field : table.fields) {
      if (field.spec.tag < 0 && field.spec.versions.has(version_)) member(field, at(base, field.offset));
    }
    if (flexible_) tagged_fields(table, base);
  }

 private:
  Form form(const Field& field) const {
    return flexible_ && !field.spec.classic_string ? Form::kCompact : Form::kClassic;
  }

  void tagged_fields(const Table& table, void* base) {
    std::int64_t last_tag = -1;
    for (std::uint32_t left = in_.varuint(); left > 0 && in_.ok(); --left) {
      const std::uint32_t tag = in_.varuint();
      const std::uint32_t size = in_.varuint();
      if (tag <= last_tag) return in_.fail("tagged fields that are not in ascending order");
      last_tag = tag;
      if (size > in_.remaining()) return in_.fail("a tagged field that is longer than its message");
      const Bytes start = in_.position();
      const Field* known = nullptr;
      for (const Field& field : table.fields) {
        if (field.spec.tag == static_cast<std::int64_t>(tag) && field.spec.versions.has(version_)) known = &field;
      }
      if (known == nullptr) {
        in_.skip(size);
        continue;
      }
      member(*known, at(base, known->offset));
      if (in_.ok() && in_.position() - start != size) in_.fail("a tagged field whose size is wrong");
    }
  }

  void member(const Field& field, void* target) {
    const bool may_be_null = field.spec.may_be_null.has(version_);
    const auto fill = [&] { return field.optional ? field.optional->emplace(target) : target; };
    const auto null = [&] {
      if (!may_be_null) in_.fail(fmt::format("null in {}, which may not be null", field.name));
    };
    if (field.array != nullptr) {
      const auto count = in_.nullable_array_length(form(field));
      if (!count) return null();
      void* vector = fill();
      for (std::uint32_t i = 0; i < *count && in_.ok(); ++i) {
        if (budget_ < field.array->stride) return in_.fail("a message that would need too much memory");
        budget_ -= field.array->stride;
        value(field, field.array->append(vector));
      }
      return;
    }
    switch (field.type) {
      case FieldType::kString: {
        const auto text = in_.nullable_string(form(field));
        if (!text) return null();
        as<std::string>(fill()) = *text;
        return;
      }
      case FieldType::kBytes:
      case FieldType::kRecords:
      case FieldType::kRecordsPayload: {
        const auto length = in_.nullable_bytes_length(form(field));
        if (!length) return null();
        if (field.type == FieldType::kBytes) as<ByteBuffer>(fill()) = to_buffer(in_.view(*length));
        if (field.type == FieldType::kRecords) as<SharedBytes>(fill()) = in_.shared(*length);
        if (field.type == FieldType::kRecordsPayload) as<Payload>(fill()).append(in_.shared(*length));
        return;
      }
      default: value(field, fill());
    }
  }

  /// A value that cannot be null: fixed sizes, structs, and the strings of an array.
  void value(const Field& field, void* target) {
    switch (field.type) {
      case FieldType::kBool: as<bool>(target) = in_.boolean(); return;
      case FieldType::kInt8: as<std::int8_t>(target) = in_.int8(); return;
      case FieldType::kInt16: {
        const std::int16_t number = in_.int16();
        std::memcpy(target, &number, sizeof number);
        return;
      }
      case FieldType::kInt32: as<std::int32_t>(target) = in_.int32(); return;
      case FieldType::kUint32: as<std::uint32_t>(target) = in_.uint32(); return;
      case FieldType::kInt64: as<std::int64_t>(target) = in_.int64(); return;
      case FieldType::kFloat64: as<double>(target) = in_.float64(); return;
      case FieldType::kUuid: as<wire::Uuid>(target) = in_.uuid(); return;
      case FieldType::kString: as<std::string>(target) = in_.string(form(field)); return;
      case FieldType::kStruct: return structure(field.nested(), target);
      case FieldType::kBytes:
      case FieldType::kRecords:
      case FieldType::kRecordsPayload: WEIR_ASSERT(!"Kafka has no arrays of bytes"); return;
    }
  }

  const int version_;
  const bool flexible_;
  Reader& in_;
  Bytes& budget_;
};

// ---- Encoding and sizes: one walk over the table, into a Writer or into a counter -----------------------------------

/// What the walk needs of an output, counted instead of written.
struct Counter {
  Bytes total = 0;

  void boolean(bool) { total += 1; }
  void int8(std::int8_t) { total += 1; }
  void int16(std::int16_t) { total += 2; }
  void int32(std::int32_t) { total += 4; }
  void uint32(std::uint32_t) { total += 4; }
  void int64(std::int64_t) { total += 8; }
  void float64(double) { total += 8; }
  void uuid(const wire::Uuid&) { total += 16; }
  void varuint(std::uint64_t v) { total += wire::varuint_size(v); }
  void nullable_string(std::optional<std::string_view> text, Form form) {
    const Bytes length = text ? std::min<Bytes>(text->size(), INT16_MAX) : 0;
    total += length + (form == Form::kClassic ? 2 : text ? wire::varuint_size(length + 1) : 1);
  }
  void nullable_length(std::optional<Bytes> length, Form form) {
    total += form == Form::kClassic ? 4 : length ? wire::varuint_size(*length + 1) : 1;
  }
  void raw(ByteView bytes) { total += bytes.size(); }
  void records(const SharedBytes& bytes) { total += bytes.size(); }
  void records(const Payload& payload) { total += payload.size(); }
};

/// A Writer that hands what it has to the payload when records come, which are not copied.
class PayloadWriter : public Writer {
 public:
  PayloadWriter(Payload& out, Bytes expected) : Writer(expected), out_(out) {}

  void records(const SharedBytes& bytes) {
    if (bytes.size() <= kCopied) return raw(bytes.view());
    flush();
    out_.append(bytes);
  }
  void records(const Payload& payload) {
    if (payload.empty()) return;
    flush();
    out_.append(payload);
  }
  void flush() { out_.append(take()); }

 private:
  static constexpr Bytes kCopied = 1024;  // below this another piece costs more than the copy
  Payload& out_;
};

/// What to reserve for a message of `size` bytes: its records count in `size` but are not copied.
Bytes expected(Bytes size) { return std::min<Bytes>(size, 4 * kKiB); }

template <typename Out>
class Encoder {
 public:
  Encoder(int version, bool flexible, Out& out) : version_(version), flexible_(flexible), out_(out) {}

  void structure(const Table& table, const void* base) {
    for (const Field& field : table.fields) {
      if (field.spec.tag < 0 && field.spec.versions.has(version_)) member(field, at(base, field.offset));
    }
    if (flexible_) tagged_fields(table, base);
  }

  void member(const Field& field, const void* source) {
    const void* inner = value_of(field, source);
    if (inner == nullptr) return null(field);
    if (field.array != nullptr) {
      const std::size_t count = field.array->size(inner);
      out_.nullable_length(count, form(field));
      for (std::size_t i = 0; i < count; ++i) value(field, at(field.array->data(inner), i * field.array->stride));
      return;
    }
    value(field, inner);
  }

 private:
  Form form(const Field& field) const {
    return flexible_ && !field.spec.classic_string ? Form::kCompact : Form::kClassic;
  }

  bool worth_a_tag(const Table& table, const Field& field, const void* base) const {
    return field.spec.tag >= 0 && field.spec.versions.has(version_) &&
           !equal_member(field, at(base, field.offset), at(table.ops->defaults(), field.offset));
  }

  void tagged_fields(const Table& table, const void* base) {
    std::uint32_t count = 0;
    int highest = -1;
    for (const Field& field : table.fields) {
      if (!worth_a_tag(table, field, base)) continue;
      ++count;
      highest = std::max(highest, field.spec.tag);
    }
    out_.varuint(count);
    for (int tag = 0; tag <= highest; ++tag) {
      for (const Field& field : table.fields) {
        if (field.spec.tag != tag || !worth_a_tag(table, field, base)) continue;
        Counter size;
        Encoder<Counter>(version_, flexible_, size).member(field, at(base, field.offset));
        out_.varuint(static_cast<std::uint64_t>(tag));
        out_.varuint(size.total);
        member(field, at(base, field.offset));
      }
    }
  }

  void null(const Field& field) {
    const bool allowed = field.spec.may_be_null.has(version_);
    if (field.array == nullptr && field.type == FieldType::kString) {
      return out_.nullable_string(allowed ? std::nullopt : std::optional(std::string_view()), form(field));
    }
    out_.nullable_length(allowed ? std::nullopt : std::optional(Bytes{0}), form(field));
  }

  void value(const Field& field, const void* source) {
    switch (field.type) {
      case FieldType::kBool: return out_.boolean(as<bool>(source));
      case FieldType::kInt8: return out_.int8(as<std::int8_t>(source));
      case FieldType::kInt16: return out_.int16(load_int16(source));
      case FieldType::kInt32: return out_.int32(as<std::int32_t>(source));
      case FieldType::kUint32: return out_.uint32(as<std::uint32_t>(source));
      case FieldType::kInt64: return out_.int64(as<std::int64_t>(source));
      case FieldType::kFloat64: return out_.float64(as<double>(source));
      case FieldType::kUuid: return out_.uuid(as<wire::Uuid>(source));
      case FieldType::kString: return out_.nullable_string(as<std::string>(source), form(field));
      case FieldType::kBytes:
        out_.nullable_length(as<ByteBuffer>(source).size(), form(field));
        return out_.raw(as<ByteBuffer>(source));
      case FieldType::kRecords:
        out_.nullable_length(as<SharedBytes>(source).size(), form(field));
        return out_.records(as<SharedBytes>(source));
      case FieldType::kRecordsPayload:
        out_.nullable_length(as<Payload>(source).size(), form(field));
        return out_.records(as<Payload>(source));
      case FieldType::kStruct: return structure(field.nested(), source);
    }
  }

  const int version_;
  const bool flexible_;
  Out& out_;
};

}  // namespace

Result<void> decode(const Table& table, void* message, int version, wire::Reader& reader) {
  // An empty string takes one byte on the wire and 32 in memory. Honest messages stay far below this.
  constexpr Bytes kGrowth = 8;
  constexpr Bytes kSpareBytes = 16 * kMiB;
  Bytes budget = kSpareBytes + kGrowth * reader.remaining();
  return decode(table, message, version, reader, budget);
}

Result<void> decode(const Table& table, void* message, int version, wire::Reader& reader, Bytes& budget) {
  if (!reader.ok()) return reader.result();
  if (!table.versions.has(version)) {
    return fail(ErrorKind::kUnsupported, fmt::format("{} has no version {}, only {} to {}", table.name, version,
                                                     table.versions.first, table.versions.last));
  }
  Decoder(version, table.flexible(version), reader, budget).structure(table, message);
  if (reader.ok()) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("{} version {} is malformed: {}", table.name, version, reader.result().error().message));
}

Bytes encoded_size(const Table& table, const void* message, int version) {
  Counter counter;
  Encoder<Counter>(version, table.flexible(version), counter).structure(table, message);
  return counter.total;
}

void encode(const Table& table, const void* message, int version, Payload& out) {
  WEIR_ASSERT(table.versions.has(version));
  PayloadWriter writer(out, expected(encoded_size(table, message, version)));
  Encoder<PayloadWriter>(version, table.flexible(version), writer).structure(table, message);
  writer.flush();
}

Payload encode_frame(const Table& header_table, const void* header, int header_version, const Table& table,
                     const void* message, int version) {
  WEIR_ASSERT(table.versions.has(version));
  const Bytes size = encoded_size(header_table, header, header_version) + encoded_size(table, message, version);
  Payload out;
  PayloadWriter writer(out, expected(sizeof(std::int32_t) + size));
  writer.int32(static_cast<std::int32_t>(size));
  Encoder<PayloadWriter>(header_version, header_table.flexible(header_version), writer).structure(header_table, header);
  Encoder<PayloadWriter>(version, table.flexible(version), writer).structure(table, message);
  writer.flush();
  return out;
}

bool equal(const Table& table, const void* a, const void* b) {
  for (const Field& field : table.fields) {
    if (!equal_member(field, at(a, field.offset), at(b, field.offset))) return false;
  }
  return true;
}

ByteBuffer encode_prefixed(const Table& table, const void* message, std::int16_t prefix, int version) {
  Payload out;
  Writer front(sizeof prefix);
  front.int16(prefix);
  out.append(front.take());
  encode(table, message, version, out);
  return out.flatten().value();  // no file ranges in what we store
}

std::int16_t record_type(ByteView key) {
  return key.size() < sizeof(std::int16_t) ? std::int16_t{-1} : Reader(key).int16();
}

}  // namespace weir::protocol
