// LogEntry: the JSON that is the value of every record of `logs` and `logs_error`.
//
//   {"server_id":"web-1","level":"INFO","message":"...","timestamp":1767225600000}
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/types.h"

namespace weir::client {

/// Header names of the place a record comes from: the identity of its file or stream, and the position in it.
inline constexpr std::string_view kSourceHeader = "weir.source";
inline constexpr std::string_view kPositionHeader = "weir.pos";
/// Set to "1" on a record whose line was cut at the line limit, or had no line end when it was sent.
inline constexpr std::string_view kTruncatedHeader = "weir.truncated";
inline constexpr std::string_view kUnterminatedHeader = "weir.unterminated";

/// Values are copies: safe to pass between threads.
struct LogEntry {
  std::string server_id;
  std::string level;
  std::string message;
  std::int64_t timestamp = 0;  ///< Unix milliseconds
  auto operator<=>(const LogEntry&) const = default;
};

/// Appends the entry as one line of JSON without a line end. Bytes that are not UTF-8 become U+FFFD, one for each;
/// returns how many. Any thread.
std::size_t append_log_entry(std::string& out, std::string_view server_id, std::string_view level,
                             std::string_view message, std::int64_t timestamp);
std::string to_json(const LogEntry& entry);

/// The level a text line states: the first of TRACE DEBUG INFO NOTICE WARN WARNING ERR ERROR CRIT CRITICAL ALERT EMERG
/// FATAL that stands alone in upper case between blanks, brackets, colons or the line's ends, else INFO. WARNING is
/// given as WARN, ERR as ERROR, CRIT as CRITICAL. Any thread.
std::string_view level_of(std::string_view line);

/// True for levels somebody waits for: ERROR, FATAL, CRITICAL, ALERT, EMERG (and the short forms ERR and CRIT). They go
/// to `logs_error`.
bool is_urgent(std::string_view level);

/// Reads entries; keeps its buffers between calls. Owned by one thread.
class LogEntryParser {
 public:
  LogEntryParser();
  ~LogEntryParser();
  LogEntryParser(LogEntryParser&&) noexcept;
  LogEntryParser& operator=(LogEntryParser&&) noexcept;

  /// An object with at least `server_id`, `level`, `message` (strings) and `timestamp` (an integer), each once; other
  /// members are ignored. kInvalid says what is wrong.
  Result<LogEntry> parse(std::string_view json);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::client
