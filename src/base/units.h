// Sizes, times and numbers as people write them: `64MiB`, `500ms`. For settings and the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/types.h"

namespace weir {

/// "64MiB", "16KiB", "1GiB", "10MB" (decimal), "67108864". No sign, no fraction. kInvalid says what is allowed.
Result<Bytes> parse_size(std::string_view text);

/// "500ms", "20s", "5m", "1h", "10us". A bare number is refused unless `bare` says what it counts (Kafka's settings are
/// in milliseconds). Fractions are allowed: "1.5s". Never negative.
Result<Duration> parse_duration(std::string_view text, Duration bare = Duration::zero());

/// A whole number in [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);

/// true/false, yes/no, on/off.
Result<bool> parse_bool(std::string_view text);

/// "64MiB", "1.5GiB", "512B": the largest unit that fits, one decimal when it is not exact.
std::string format_size(Bytes size);
/// "500ms", "20s", "1.5s", "2m", as parse_duration reads it.
std::string format_duration(Duration duration);

}  // namespace weir
