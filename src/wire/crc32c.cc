#include "wire/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace weir::wire {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

/// Eight tables, so that eight bytes are taken at once ("slicing by 8", Kounavis and Berry 2005).
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < tables.size(); ++t) {
    for (std::size_t i = 0; i < 256; ++i) tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
  }
  return tables;
}
constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
/// The instruction takes eight bytes a cycle but answers after three, so three lanes are kept busy at once. Their
/// results are joined by moving a checksum over the bytes of a lane as if those were zero, which is linear: four table
/// look-ups.
constexpr std::size_t kLane = 1024;
using Shift = std::array<std::array<std::uint32_t, 256>, 4>;
constexpr Shift make_shift() {
  Shift shift{};
  for (int bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kLane; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xff];
    auto& table = shift[static_cast<std::size_t>(bit / 8)];
    for (std::size_t i = 0; i < 256; ++i) {
      if ((i >> (bit % 8) & 1) != 0) table[i] ^= crc;
    }
  }
  return shift;
}
constexpr Shift kShift = make_shift();

std::uint64_t over_a_lane(std::uint64_t crc) {
  return kShift[0][crc & 0xff] ^ kShift[1][(crc >> 8) & 0xff] ^ kShift[2][(crc >> 16) & 0xff] ^ kShift[3][crc >> 24];
}

std::uint64_t word_at(const std::byte* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(ByteView bytes, std::uint32_t so_far) {
  std::uint64_t crc = static_cast<std::uint32_t>(~so_far);
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * kLane; p += 3 * kLane, left -= 3 * kLane) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kLane; i += 8) {
      crc = _mm_crc32_u64(crc, word_at(p + i));
      second = _mm_crc32_u64(second, word_at(p + kLane + i));
      third = _mm_crc32_u64(third, word_at(p + 2 * kLane + i));
    }
    crc = over_a_lane(over_a_lane(crc) ^ second) ^ third;
  }
  for (; left >= 8; p += 8, left -= 8) crc = _mm_crc32_u64(crc, word_at(p));
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; left > 0; ++p, --left) crc32 = _mm_crc32_u8(crc32, std::to_integer<std::uint8_t>(*p));
  return ~crc32;
}
#endif

}  // namespace

std::uint32_t crc32c_software(ByteView bytes, std::uint32_t so_far) {
  std::uint32_t crc = ~so_far;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(p[i]); };
  for (; left >= 8; p += 8, left -= 8) {
    const std::uint32_t low = crc ^ (byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][byte(4)] ^ kTables[2][byte(5)] ^ kTables[1][byte(6)] ^ kTables[0][byte(7)];
  }
  for (; left > 0; ++p, --left) crc = (crc >> 8) ^ kTables[0][(crc ^ byte(0)) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(ByteView bytes, std::uint32_t so_far) {
#if defined(__x86_64__)
  static const bool kHardware = __builtin_cpu_supports("sse4.2") != 0;
  if (kHardware) return crc32c_hardware(bytes, so_far);
#endif
  return crc32c_software(bytes, so_far);
}

}  // namespace weir::wire
