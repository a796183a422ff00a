#include "protocol/random.h"

#include <bit>
#include <cstring>

namespace weir::protocol {
namespace {

template <typename T>
T& as(void* value) {
  return *static_cast<T*>(value);
}

class Randomizer {
 public:
  Randomizer(int version, std::mt19937_64& random) : version_(version), random_(random) {}

  void structure(const Table& table, void* base) {
    for (const Field& field : table.fields) {
      if (!field.spec.versions.has(version_)) continue;
      if (field.spec.tag >= 0 && one_in(3)) continue;
      member(field, static_cast<std::byte*>(base) + field.offset);
    }
  }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }

  std::uint64_t number() {
    static constexpr std::uint64_t kExtremes[] = {0,         1,         ~std::uint64_t{0},     INT16_MAX,
                                                  INT32_MAX, INT64_MAX, std::uint64_t{1} << 63};
    return one_in(3) ? kExtremes[random_() % std::size(kExtremes)] : random_() >> (random_() % 64);
  }

  /// Mostly short, now and then longer than one byte of a varint counts.
  ByteBuffer bytes() {
    ByteBuffer out(one_in(12) ? random_() % 300 : random_() % 9);
    for (std::byte& b : out) b = static_cast<std::byte>(random_());
    return out;
  }

  void member(const Field& field, void* target) {
    if (field.optional != nullptr) {
      if (field.spec.may_be_null.has(version_) && one_in(3)) return;
      target = field.optional->emplace(target);
    }
    if (field.array == nullptr) return value(field, target);
    for (std::uint64_t n = random_() % 4; n > 0; --n) value(field, field.array->append(target));
  }

  void value(const Field& field, void* target) {
    switch (field.type) {
      case FieldType::kBool: as<bool>(target) = one_in(2); return;
      case FieldType::kInt8: as<std::int8_t>(target) = static_cast<std::int8_t>(number()); return;
      case FieldType::kInt16: {
        const auto small = static_cast<std::int16_t>(number());  // may be an ErrorCode
        std::memcpy(target, &small, sizeof small);
        return;
      }
      case FieldType::kInt32: as<std::int32_t>(target) = static_cast<std::int32_t>(number()); return;
      case FieldType::kUint32: as<std::uint32_t>(target) = static_cast<std::uint32_t>(number()); return;
      case FieldType::kInt64: as<std::int64_t>(target) = static_cast<std::int64_t>(number()); return;
      case FieldType::kFloat64: as<double>(target) = std::bit_cast<double>(number()); return;
      case FieldType::kUuid:
        for (auto& b : as<wire::Uuid>(target).bytes) b = static_cast<std::uint8_t>(random_());
        return;
      case FieldType::kString: as<std::string>(target) = as_text(bytes()); return;
      case FieldType::kBytes: as<ByteBuffer>(target) = bytes(); return;
      case FieldType::kRecords: as<SharedBytes>(target) = SharedBytes(bytes()); return;
      case FieldType::kRecordsPayload: as<Payload>(target).append(bytes()); return;
      case FieldType::kStruct: return structure(field.nested(), target);
    }
  }

  const int version_;
  std::mt19937_64& random_;
};

}  // namespace

void randomize(const Table& table, void* message, int version, std::mt19937_64& random) {
  Randomizer(version, random).structure(table, message);
}

}  // namespace weir::protocol
