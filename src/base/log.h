// The program's own notices: one line each, to stderr, never secrets. Data goes to stdout and not through here.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "weir/types.h"

namespace weir::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// Lines below `level` are dropped. Any thread; default kInfo.
void set_level(Level level);
bool enabled(Level level);

/// Writes one line to stderr: time, level, text. Line breaks inside the text become spaces. Any thread.
void write(Level level, std::string_view text);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn)) write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError)) write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

/// Lets one line through per `period` and counts the rest, so that a repeating fault cannot fill a disk (field: one
/// line per broker per 30 s). Owned by one thread.
class Every {
 public:
  explicit Every(Duration period) : period_(period) {}
  /// True when a line may be written now; `suppressed()` then says how many were held back since the last one.
  bool allow(MonoTime now);
  std::size_t suppressed() const { return reported_; }
  /// How many were held back and never told, for a last line at the end; they count as told then.
  std::size_t take_held() { return std::exchange(held_, 0); }

 private:
  Duration period_;
  MonoTime next_{};
  std::size_t held_ = 0;
  std::size_t reported_ = 0;
};

}  // namespace weir::log
