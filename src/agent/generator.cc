#include "agent/generator.h"

#include <fmt/format.h>

namespace weir::agent {

namespace {
/// Spreads consecutive numbers (SplitMix64's finalizer).
std::uint64_t mixed(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
  n = (n ^ (n >> 27)) * 0x94d049bb133111eb;
  return n ^ (n >> 31);
}
}  // namespace

std::uint64_t Generator::due(MonoTime now) const {
  if (now < start_) return 0;
  // The first is due at the start. The small part keeps due_at(n) inside due() in spite of rounding.
  return std::uint64_t(to_seconds(now - start_) * per_second_ + 1e-6) + 1;
}

Generator::Synthetic Generator::entry(std::uint64_t number) {
  const std::uint64_t random = mixed(number);
  // Exact shares in every hundred, in an order that looks like none.
  const std::uint64_t share = (number * 37 + number / 100 * 11) % 100;
  Synthetic entry;
  entry.server_id = fmt::format("server-{:02}", random % 64 + 1);
  const std::uint64_t request = random >> 20 & 0xffffff;
  const std::uint64_t took = (random >> 44) % 900 + 1;
  if (share < 90) {
    entry.level = "INFO";
    entry.message = fmt::format("request {:06x} served in {} ms with status 200", request, took);
  } else if (share < 98) {
    entry.level = "WARN";
    entry.message = fmt::format("request {:06x} was slow: {} ms, pool at {} %", request, took + 1000, random % 20 + 80);
  } else {
    entry.level = "ERROR";
    entry.message = fmt::format("request {:06x} failed after {} ms: upstream reset the connection", request, took);
  }
  return entry;
}

}  // namespace weir::agent
