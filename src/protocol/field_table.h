// What a message looks like on the wire, as data: one table beside each struct, which names every member.
//
//   struct HeartbeatRequest {
//     std::string group_id;
//     std::optional<std::string> group_instance_id;
//     WEIR_MESSAGE(HeartbeatRequest, valid(0, 4).flexible(4),
//                  WEIR_FIELD(group_id, since(0)),
//                  WEIR_FIELD(group_instance_id, since(3).nullable(3)))
//   };
//
// The functions that interpret a table (protocol/codec.h) are written once for all messages. The type of a member says
// how it is written, a default member initializer is the field's default, std::optional is a field that may be null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "wire/uuid.h"

namespace weir::protocol {

/// A range of versions, both ends included.
struct Versions {
  std::int16_t first = 0;
  std::int16_t last = -1;
  constexpr bool has(int version) const { return first <= version && version <= last; }
  constexpr bool operator==(const Versions&) const = default;
};
inline constexpr std::int16_t kOpenEnd = INT16_MAX;
/// "First flexible version" of a message that has none.
inline constexpr std::int16_t kNeverFlexible = INT16_MAX;

/// When and how a field is written: `since(3).nullable(3)`, `since(10).tagged(0)`.
struct FieldSpec {
  Versions versions;
  Versions may_be_null;
  int tag = -1;
  bool classic_string = false;

  constexpr FieldSpec nullable(std::int16_t first, std::int16_t last = kOpenEnd) const {
    FieldSpec spec = *this;
    spec.may_be_null = {first, last};
    return spec;
  }
  /// Written among the tagged fields, and only when it differs from its default.
  constexpr FieldSpec tagged(int number) const {
    FieldSpec spec = *this;
    spec.tag = number;
    return spec;
  }
  /// Keeps its int16 length in flexible versions too (the client id of the request header).
  constexpr FieldSpec never_compact() const {
    FieldSpec spec = *this;
    spec.classic_string = true;
    return spec;
  }
};
constexpr FieldSpec between(std::int16_t first, std::int16_t last) { return {{first, last}, {}}; }
constexpr FieldSpec since(std::int16_t first) { return between(first, kOpenEnd); }

/// The versions a message exists in, and from which one on it is flexible: `valid(0, 4).flexible(4)`.
struct MessageSpec {
  Versions versions;
  std::int16_t flexible_since = kNeverFlexible;
  constexpr MessageSpec flexible(std::int16_t since) const { return {versions, since}; }
};
constexpr MessageSpec valid(std::int16_t first, std::int16_t last) { return {{first, last}}; }

/// How one value is written. kRecords is a run of record batches: sliced from the request without a copy (SharedBytes),
/// or sent as it is, file ranges included (Payload).
enum class FieldType : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kUint32,
  kInt64,
  kFloat64,
  kUuid,
  kString,
  kBytes,
  kRecords,
  kRecordsPayload,
  kStruct,
};

struct Table;

/// What the interpreters need to know of a std::vector and a std::optional whose element type they do not know.
struct ArrayOps {
  std::size_t stride;
  std::size_t (*size)(const void* vector);
  const void* (*data)(const void* vector);
  void* (*append)(void* vector);  ///< One more element with its defaults, returned.
};
struct OptionalOps {
  const void* (*get)(const void* optional);  ///< Null when it holds nothing.
  void* (*emplace)(void* optional);
};
struct TypeOps {
  void* (*create)();
  void (*destroy)(void* message);
  const void* (*defaults)();  ///< A message nobody has touched: the defaults of all fields.
};

struct Field {
  std::string_view name;  ///< Kafka's name in snake_case.
  std::size_t offset;
  FieldSpec spec;
  FieldType type;               ///< Of the element, for an array.
  const OptionalOps* optional;  ///< Null unless the member is a std::optional.
  const ArrayOps* array;        ///< Null unless the member is (an optional of) a std::vector of fields.
  const Table& (*nested)();     ///< Of kStruct.
};

struct Table {
  std::string_view name;  ///< Kafka's name of the message or struct.
  Versions versions;      ///< Of a message: all that Kafka 4.3.1 defines. What is served is the broker's to say.
  std::int16_t flexible_since;
  std::span<const Field> fields;
  const TypeOps* ops;

  bool flexible(int version) const { return version >= flexible_since; }
};

namespace detail {

template <typename T>
struct Elements {};
template <typename T>
struct Elements<std::vector<T>> {
  static_assert(!std::is_same_v<T, bool>);
  using Type = T;
  static constexpr ArrayOps kOps = {
      sizeof(T), [](const void* v) { return static_cast<const std::vector<T>*>(v)->size(); },
      [](const void* v) -> const void* { return static_cast<const std::vector<T>*>(v)->data(); },
      [](void* v) -> void* { return &static_cast<std::vector<T>*>(v)->emplace_back(); }};
};

template <typename T>
struct Optional {
  using Type = T;
  static constexpr const OptionalOps* kOps = nullptr;
};
template <typename T>
struct Optional<std::optional<T>> {
  using Type = T;
  static constexpr OptionalOps kTable = {
      [](const void* o) -> const void* {
        const auto& optional = *static_cast<const std::optional<T>*>(o);
        return optional ? &*optional : nullptr;
      },
      [](void* o) -> void* { return &static_cast<std::optional<T>*>(o)->emplace(); }};
  static constexpr const OptionalOps* kOps = &kTable;
};

template <typename T>
constexpr FieldType type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return FieldType::kBool;
  else if constexpr (std::is_enum_v<T>)
    return type_of<std::underlying_type_t<T>>();
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return FieldType::kInt8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return FieldType::kInt16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return FieldType::kInt32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return FieldType::kUint32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return FieldType::kInt64;
  else if constexpr (std::is_same_v<T, double>)
    return FieldType::kFloat64;
  else if constexpr (std::is_same_v<T, wire::Uuid>)
    return FieldType::kUuid;
  else if constexpr (std::is_same_v<T, std::string>)
    return FieldType::kString;
  else if constexpr (std::is_same_v<T, ByteBuffer>)
    return FieldType::kBytes;
  else if constexpr (std::is_same_v<T, SharedBytes>)
    return FieldType::kRecords;
  else if constexpr (std::is_same_v<T, Payload>)
    return FieldType::kRecordsPayload;
  else
    return FieldType::kStruct;
}

template <typename T>
constexpr Field value_field(std::string_view name, std::size_t offset, FieldSpec spec, const OptionalOps* optional,
                            const ArrayOps* array) {
  Field field{name, offset, spec, type_of<T>(), optional, array, nullptr};
  if constexpr (type_of<T>() == FieldType::kStruct) field.nested = &T::table;
  return field;
}

template <typename Member>
constexpr Field make_field(std::string_view name, std::size_t offset, FieldSpec spec) {
  using Inner = typename Optional<Member>::Type;
  constexpr const OptionalOps* optional = Optional<Member>::kOps;
  if constexpr (!std::is_same_v<Inner, ByteBuffer> && requires { typename Elements<Inner>::Type; }) {
    return value_field<typename Elements<Inner>::Type>(name, offset, spec, optional, &Elements<Inner>::kOps);
  } else {
    return value_field<Inner>(name, offset, spec, optional, nullptr);
  }
}

template <typename M>
inline constexpr TypeOps kTypeOps = {[]() -> void* { return new M; }, [](void* m) { delete static_cast<M*>(m); },
                                     []() -> const void* {
                                       static const M kDefaults{};
                                       return &kDefaults;
                                     }};

}  // namespace detail
}  // namespace weir::protocol

// clang-format off
/// The table of a message: its valid versions and its fields in the order of the wire.
#define WEIR_MESSAGE(Message, spec, ...)                                                                         \
  static const ::weir::protocol::Table& table() {                                                                \
    using namespace ::weir::protocol; /* since() and between() read better bare */                               \
    using M = Message;                                                                                           \
    static constexpr MessageSpec kSpec = spec;                                                                   \
    static constexpr Field kFields[] = {__VA_ARGS__};                                                            \
    static constexpr Table kTable = {#Message, kSpec.versions, kSpec.flexible_since, kFields, &detail::kTypeOps<M>}; \
    return kTable;                                                                                               \
  }
/// The table of a struct inside a message: the message says which versions there are.
#define WEIR_STRUCT(Name, ...) WEIR_MESSAGE(Name, valid(0, ::weir::protocol::kOpenEnd), __VA_ARGS__)
/// One member: its versions and what else is special about it.
#define WEIR_FIELD(member, spec) \
  ::weir::protocol::detail::make_field<decltype(M::member)>(#member, offsetof(M, member), spec)
// clang-format on
