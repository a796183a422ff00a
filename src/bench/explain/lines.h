// The lines a benchmark prints, told apart: what one line says, and text cut into lines within a fixed amount of
// memory.
//
//   Message 7 received | Timestamp: 1618685061270 | Latency: 13.24      one record seen by a consumer
//   IN QUEUE: 7                                                         records waiting in a producer
//   [INFO] Local producer queue is full (100000 messages awaiting delivery): ...
//
// A line may be quoted, indented, a list item, or have a logger's prefix (time, level, name). One whose fields are not
// numbers (a program's text, "nan") is not a sample. Pure; values only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "weir/types.h"

namespace weir::bench {

/// One record received. `number` counts from 1, `stamp_ms` is the record's timestamp in Unix ms, `latency_ms` the
/// receive time minus the stamp (negative when two clocks disagree).
struct MessageLine {
  std::int64_t number = 0;
  std::int64_t stamp_ms = 0;
  double latency_ms = 0;
};
/// Records in the producer's queue.
struct QueueLine {
  std::int64_t length = 0;
};
/// The producer refused a record because its queue was full; what follows is a flush.
struct QueueFullLine {
  std::int64_t length = 0;
};
struct BlankLine {};
struct UnknownLine {};
using Line = std::variant<UnknownLine, BlankLine, MessageLine, QueueLine, QueueFullLine>;

/// What `text` (without its line break) says. Any bytes.
Line parse_line(std::string_view text);

/// Cuts a stream of chunks into lines at '\n', dropping '\r' before it. Holds at most kMaxLine bytes: a longer line is
/// handed over cut to that length, which no known line reaches. Owned by one thread.
class LineSplitter {
 public:
  static constexpr Bytes kMaxLine = 64 * kKiB;

  explicit LineSplitter(std::function<void(std::string_view)> on_line) : on_line_(std::move(on_line)) {}
  void feed(std::string_view chunk);
  /// The end of one input: a last line without a line break counts.
  void finish();

 private:
  void emit(std::string_view line);

  std::function<void(std::string_view)> on_line_;
  std::string partial_;
  bool pending_ = false;  // bytes of an unfinished line were seen
};

}  // namespace weir::bench
