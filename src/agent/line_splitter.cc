#include "agent/line_splitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace weir::agent {
namespace {

/// The first `limit` bytes of a longer text, or up to three fewer: a UTF-8 character is not cut in two.
std::string_view cut(std::string_view text, Bytes limit) {
  const auto continues = [&](Bytes at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  for (Bytes length = limit; length > 0 && limit - length < 4; --length) {
    if (!continues(length)) return text.substr(0, length);
  }
  return text.substr(0, limit);  // not UTF-8
}

}  // namespace

Bytes LineSplitter::split(std::string_view bytes, EntryTaker& taker) {
  Bytes at = 0;
  const auto move_to = [&](Bytes to) {
    position_ += to - at;
    at = to;
  };
  while (at < bytes.size()) {
    const Bytes line_end = bytes.find('\n', at);
    const bool complete = line_end != std::string_view::npos;
    if (in_hole_) {
      in_hole_ = bytes[at] == '\0';
      move_to(std::min(bytes.find_first_not_of('\0', at), bytes.size()));
      taker.pass(position_);
      continue;
    }
    if (skipping_) {
      move_to(complete ? line_end + 1 : bytes.size());
      taker.pass(position_);
      skipping_ = !complete;
      continue;
    }
    Bytes end = complete ? line_end : bytes.size();
    if (complete && end > at && bytes[end - 1] == '\r') --end;
    // Without a line end yet, one more byte might be its "\r".
    if (end - at > limit_ + (complete ? 0 : 1)) {
      // A hole left by a truncation or a power cut does not make the text behind it a long line.
      if (bytes[at] == '\0') {
        in_hole_ = true;
        continue;
      }
      if (policy_ == LongLines::kTruncate &&
          !taker.take(
              {.text = cut(bytes.substr(at), limit_), .position = position_, .end = position_, .truncated = true})) {
        break;
      }
      ++long_lines_;
      long_line_at_ = position_;
      skipping_ = true;
      continue;
    }
    if (!complete) break;
    const Bytes next = line_end + 1;
    if (!taker.take({.text = bytes.substr(at, end - at), .position = position_, .end = position_ + (next - at)})) break;
    move_to(next);
  }
  return at;
}

bool LineSplitter::flush(std::string_view bytes, EntryTaker& taker) {
  if (bytes.empty()) return true;
  const std::uint64_t end = position_ + bytes.size();
  if (!taker.take({.text = bytes, .position = position_, .end = end, .unterminated = true})) return false;
  position_ = end;
  return true;
}

std::string long_line_notice(std::string_view name, std::uint64_t position, const AgentSettings& settings) {
  const bool cut = settings.long_lines == LongLines::kTruncate;
  return fmt::format("{}: the line at byte {} is longer than {} (line_limit) and is {}, as later ones will be", name,
                     position, format_size(settings.line_limit), cut ? "cut there" : "left out");
}

}  // namespace weir::agent
