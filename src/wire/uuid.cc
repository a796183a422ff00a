#include "wire/uuid.h"

#include <random>

namespace weir::wire {
namespace {
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kTextLength = 22;
}  // namespace

Uuid random_uuid() {
  thread_local std::random_device device;
  for (;;) {
    Uuid id;
    for (std::size_t i = 0; i < id.bytes.size(); i += 4) {
      const std::uint32_t word = device();
      std::memcpy(&id.bytes[i], &word, sizeof word);
    }
    id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
    // Tools would take a leading dash for an option; the version bits already exclude the reserved ids (0, 1 and 100).
    if (to_string(id).front() != '-') return id;
  }
}

std::string to_string(const Uuid& id) {
  std::string text;
  text.reserve(kTextLength);
  std::uint32_t bits = 0;
  int held = 0;
  for (const std::uint8_t byte : id.bytes) {
    bits = (bits << 8) | byte;
    held += 8;
    while (held >= 6) {
      held -= 6;
      text += kAlphabet[(bits >> held) & 63];
    }
  }
  text += kAlphabet[(bits << (6 - held)) & 63];
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != kTextLength) return std::nullopt;
  Uuid id;
  std::uint32_t bits = 0;
  int held = 0;
  std::size_t out = 0;
  for (const char c : text) {
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8 && out < id.bytes.size()) {
      held -= 8;
      id.bytes[out++] = static_cast<std::uint8_t>(bits >> held);
    }
  }
  if ((bits & 0x0f) != 0) return std::nullopt;  // the four bits that do not fit a byte
  return id;
}

}  // namespace weir::wire
