// From bytes to lines: positions, the line limit, runs of NUL, the line without an end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/agent.h"
#include "weir/types.h"

namespace weir::agent {

/// One line as it was read. `text` is valid during the call it is passed to.
struct Entry {
  std::string_view text;       ///< without its line end
  std::uint64_t position = 0;  ///< of its first byte in the source
  std::uint64_t end = 0;       ///< of the first byte after its line end
  bool truncated = false;      ///< cut at the line limit; what follows up to the line end is passed over
  bool unterminated = false;   ///< sent although no line end came
};

/// Takes what a splitter finds. Implemented by who sends.
class EntryTaker {
 public:
  virtual ~EntryTaker() = default;
  /// False: no room; the same entry is offered again later.
  virtual bool take(const Entry& entry) = 0;
  /// Bytes up to `end` are not sent.
  virtual void pass(std::uint64_t end) = 0;
};

/// Keeps no bytes: the caller offers the bytes from position() on, and again with more of them when a line was not
/// complete. Line ends are "\n" and "\r\n". Owned by one thread.
class LineSplitter {
 public:
  LineSplitter(Bytes limit, LongLines policy, std::uint64_t position)
      : limit_(limit), policy_(policy), position_(position) {}

  /// `bytes` begin at position(). Offers every complete line to `taker` until it has no room; returns how many bytes
  /// are done with. `bytes` must be longer than the limit plus 2 whenever the source has that much.
  Bytes split(std::string_view bytes, EntryTaker& taker);
  /// What is left without a line end, as a line of its own: `bytes` is all there is from position() on, at most the
  /// limit. False when the taker had no room.
  bool flush(std::string_view bytes, EntryTaker& taker);

  std::uint64_t position() const { return position_; }
  /// In the rest of a line above the limit.
  bool skipping() const { return skipping_; }
  std::uint64_t long_lines() const { return long_lines_; }
  /// Where the last of them begins.
  std::uint64_t long_line_at() const { return long_line_at_; }

 private:
  Bytes limit_;
  LongLines policy_;
  std::uint64_t position_;
  bool skipping_ = false;
  bool in_hole_ = false;  // in the NULs a line above the limit began with
  std::uint64_t long_lines_ = 0;
  std::uint64_t long_line_at_ = 0;
};

/// What people are told about the first such line of `name`.
std::string long_line_notice(std::string_view name, std::uint64_t position, const AgentSettings& settings);

}  // namespace weir::agent
