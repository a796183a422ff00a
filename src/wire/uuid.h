// Kafka's 16-byte ids: topics, members, directories.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weir::wire {

/// All zero means "none", as in Kafka. A value: copy it freely.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Uuid&) const = default;
  bool is_zero() const { return *this == Uuid{}; }
};

/// A new random id (version 4), never one that Kafka reserves and never one whose text starts with '-'. Any thread.
Uuid random_uuid();

/// Kafka's text: 22 characters of base64url without padding.
std::string to_string(const Uuid& id);
/// The reverse; nothing when the text is not such an id.
std::optional<Uuid> parse_uuid(std::string_view text);

}  // namespace weir::wire

template <>
struct std::hash<weir::wire::Uuid> {
  std::size_t operator()(const weir::wire::Uuid& id) const noexcept {
    std::uint64_t half[2];
    std::memcpy(half, id.bytes.data(), sizeof half);
    return std::hash<std::uint64_t>{}(half[0] ^ (half[1] * 0x9e3779b97f4a7c15ull));
  }
};
