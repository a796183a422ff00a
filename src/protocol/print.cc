// Messages as one line for people.
#include <fmt/format.h>

#include <iterator>

#include "protocol/codec.h"
#include "protocol/error_code.h"

namespace weir::protocol {
namespace {

using Out = std::back_insert_iterator<std::string>;

template <typename T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}

void print_struct(const Table& table, const void* base, int version, std::string& out);

/// Quoted, with what is not printable as \xNN: one line stays one line.
void print_text(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(Out(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

void print_value(const Field& field, const void* value, int version, std::string& out) {
  switch (field.type) {
    case FieldType::kBool: out += as<bool>(value) ? "true" : "false"; return;
    case FieldType::kInt8: fmt::format_to(Out(out), "{}", int{as<std::int8_t>(value)}); return;
    case FieldType::kInt16:
      if (field.name == "error_code") {
        out += name(as<ErrorCode>(value));
      } else {
        fmt::format_to(Out(out), "{}", as<std::int16_t>(value));
      }
      return;
    case FieldType::kInt32: fmt::format_to(Out(out), "{}", as<std::int32_t>(value)); return;
    case FieldType::kUint32: fmt::format_to(Out(out), "{}", as<std::uint32_t>(value)); return;
    case FieldType::kInt64: fmt::format_to(Out(out), "{}", as<std::int64_t>(value)); return;
    case FieldType::kFloat64: fmt::format_to(Out(out), "{}", as<double>(value)); return;
    case FieldType::kUuid: out += to_string(as<wire::Uuid>(value)); return;
    case FieldType::kString: return print_text(as<std::string>(value), out);
    case FieldType::kBytes: fmt::format_to(Out(out), "<{} bytes>", as<ByteBuffer>(value).size()); return;
    case FieldType::kRecords: fmt::format_to(Out(out), "<{} bytes>", as<SharedBytes>(value).size()); return;
    case FieldType::kRecordsPayload: fmt::format_to(Out(out), "<{} bytes>", as<Payload>(value).size()); return;
    case FieldType::kStruct: return print_struct(field.nested(), value, version, out);
  }
}

void print_member(const Field& field, const void* member, int version, std::string& out) {
  const void* value = field.optional ? field.optional->get(member) : member;
  if (value == nullptr) {
    out += "null";
    return;
  }
  if (field.array == nullptr) return print_value(field, value, version, out);
  out += '[';
  for (std::size_t i = 0; i < field.array->size(value); ++i) {
    if (i > 0) out += ", ";
    print_value(field, static_cast<const std::byte*>(field.array->data(value)) + i * field.array->stride, version, out);
  }
  out += ']';
}

void print_struct(const Table& table, const void* base, int version, std::string& out) {
  out += table.name;
  out += '{';
  bool first = true;
  for (const Field& field : table.fields) {
    if (!field.spec.versions.has(version)) continue;
    if (!first) out += ", ";
    first = false;
    (out += field.name) += '=';
    print_member(field, static_cast<const std::byte*>(base) + field.offset, version, out);
  }
  out += '}';
}

}  // namespace

std::string print(const Table& table, const void* message, int version) {
  std::string out;
  print_struct(table, message, version, out);
  return out;
}

}  // namespace weir::protocol
