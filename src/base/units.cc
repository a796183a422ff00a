#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace weir {
namespace {

struct SizeUnit {
  std::string_view name;
  Bytes factor;
};
// Longest names first: "MiB" must not be read as "B" behind "Mi".
constexpr std::array<SizeUnit, 8> kSizeUnits{{{"KiB", kKiB},
                                              {"MiB", kMiB},
                                              {"GiB", kGiB},
                                              {"KB", 1000},
                                              {"kB", 1000},
                                              {"MB", 1'000'000},
                                              {"GB", 1'000'000'000},
                                              {"B", 1}}};

struct TimeUnit {
  std::string_view name;
  Duration length;
};
constexpr std::array<TimeUnit, 6> kTimeUnits{{{"ms", std::chrono::milliseconds(1)},
                                              {"us", std::chrono::microseconds(1)},
                                              {"ns", Duration(1)},
                                              {"s", std::chrono::seconds(1)},
                                              {"m", std::chrono::minutes(1)},
                                              {"h", std::chrono::hours(1)}}};

template <typename T>
bool parse_whole(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<Bytes> parse_size(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a size; write it like 64MiB, 16KiB or 67108864", text));
  };
  Bytes factor = 1;
  std::string_view digits = text;
  for (const SizeUnit& unit : kSizeUnits) {
    if (!digits.ends_with(unit.name)) continue;
    factor = unit.factor;
    digits.remove_suffix(unit.name.size());
    break;
  }
  Bytes count = 0;
  if (!parse_whole(digits, count)) return bad();
  if (count > std::numeric_limits<std::int64_t>::max() / factor) return bad();
  return count * factor;
}

Result<Duration> parse_duration(std::string_view text, Duration bare) {
  const auto bad = [&] {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a time; write it like 500ms, 20s or 5m", text));
  };
  Duration length = bare;
  std::string_view digits = text;
  for (const TimeUnit& unit : kTimeUnits) {
    if (!digits.ends_with(unit.name)) continue;
    length = unit.length;
    digits.remove_suffix(unit.name.size());
    break;
  }
  if (length == Duration::zero()) return bad();
  std::int64_t whole = 0;
  if (parse_whole(digits, whole)) {
    if (whole < 0 || whole > std::numeric_limits<std::int64_t>::max() / length.count()) return bad();
    return whole * length;
  }
  double fraction = 0;
  if (!parse_whole(digits, fraction) || !std::isfinite(fraction) || fraction < 0) return bad();
  const double total = fraction * static_cast<double>(length.count());
  if (total > 9e18) return bad();
  return Duration(static_cast<std::int64_t>(total));
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  if (!parse_whole(text, value) || value < low || value > high)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a whole number from {} to {}", text, low, high));
  return value;
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "no" || text == "off") return false;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is neither true nor false", text));
}

std::string format_size(Bytes size) {
  for (const auto& [name, factor] : {SizeUnit{"GiB", kGiB}, SizeUnit{"MiB", kMiB}, SizeUnit{"KiB", kKiB}}) {
    if (size < factor) continue;
    if (size % factor == 0) return fmt::format("{}{}", size / factor, name);
    return fmt::format("{:.1f}{}", static_cast<double>(size) / static_cast<double>(factor), name);
  }
  return fmt::format("{}B", size);
}

std::string format_duration(Duration duration) {
  using namespace std::chrono_literals;
  for (const auto& [name, length] :
       {TimeUnit{"h", 1h}, TimeUnit{"m", 1min}, TimeUnit{"s", 1s}, TimeUnit{"ms", 1ms}, TimeUnit{"us", 1us}})
    if (duration >= length && duration % length == Duration::zero())
      return fmt::format("{}{}", duration / length, name);
  if (duration >= 1s) return fmt::format("{:.3g}s", to_seconds(duration));
  if (duration >= 1ms) return fmt::format("{:.3g}ms", to_ms(duration));
  return duration == Duration::zero() ? "0ms" : fmt::format("{}ns", duration.count());
}

}  // namespace weir
