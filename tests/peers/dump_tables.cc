// Prints the field tables of src/protocol as JSON, for check_tables.py.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "protocol/api_tables.h"

using namespace weir;
using namespace weir::protocol;

namespace {

template <typename T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}

std::string versions(Versions v) {
  if (v.last < v.first) return "null";
  return fmt::format("[{}, {}]", v.first, v.last == kOpenEnd ? "null" : std::to_string(v.last));
}

std::string type_name(const Field& field) {
  static constexpr std::string_view kNames[] = {"bool",    "int8", "int16",  "int32", "uint32",  "int64",
                                                "float64", "uuid", "string", "bytes", "records", "records"};
  const std::string element(field.type == FieldType::kStruct ? field.nested().name
                                                             : kNames[static_cast<std::size_t>(field.type)]);
  return field.array != nullptr ? "[]" + element : element;
}

/// The default as Kafka's definitions would spell it.
std::string default_value(const Field& field, const void* message) {
  const void* value = static_cast<const std::byte*>(message) + field.offset;
  if (field.optional != nullptr) value = field.optional->get(value);
  if (value == nullptr) return "null";
  if (field.array != nullptr) return field.array->size(value) == 0 ? "" : "not empty";
  switch (field.type) {
    case FieldType::kBool: return as<bool>(value) ? "true" : "false";
    case FieldType::kInt8: return std::to_string(as<std::int8_t>(value));
    case FieldType::kInt16: return std::to_string(as<std::int16_t>(value));
    case FieldType::kInt32: return std::to_string(as<std::int32_t>(value));
    case FieldType::kUint32: return std::to_string(as<std::uint32_t>(value));
    case FieldType::kInt64: return std::to_string(as<std::int64_t>(value));
    case FieldType::kFloat64: return fmt::format("{}", as<double>(value));
    case FieldType::kString: return as<std::string>(value);
    default: return "";
  }
}

std::string fields(const Table& table) {
  std::string out = "[";
  for (const Field& field : table.fields) {
    out += fmt::format(R"({}{{"name": "{}", "type": "{}", "versions": {}, "nullable": {}, "tag": {}, )"
                       R"("never_compact": {}, "default": "{}", "fields": {}}})",
                       out.size() > 1 ? ", " : "", field.name, type_name(field), versions(field.spec.versions),
                       versions(field.spec.may_be_null), field.spec.tag, field.spec.classic_string,
                       default_value(field, table.ops->defaults()),
                       field.type == FieldType::kStruct ? fields(field.nested()) : "[]");
  }
  return out + "]";
}

void print(int key, const Table& table) {
  fmt::print("{{\"name\": \"{}\", \"key\": {}, \"versions\": {}, \"flexible\": {}, \"fields\": {}}}\n", table.name, key,
             versions(table.versions),
             table.flexible_since == kNeverFlexible ? "null" : std::to_string(table.flexible_since), fields(table));
}

}  // namespace

int main() {
  for (const ApiTables& api : api_tables()) {
    print(static_cast<int>(api.key), api.request());
    print(static_cast<int>(api.key), api.response());
  }
  for (const Table* table : other_tables()) print(-1, *table);
}
