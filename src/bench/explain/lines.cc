#include "bench/explain/lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace weir::bench {
namespace {

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;  // exact in a double
constexpr std::int64_t kMaxStampMs = 253'402'300'799'999;   // the end of the year 9999
constexpr double kMaxLatencyMs = 1e12;                      // 31 years: beyond it the field is not a latency
constexpr std::string_view kBlanks[] = {" ", "\t", "\xc2\xa0", "\xe3\x80\x80",
                                        "\xef\xbb\xbf"};                          // NBSP, wide blank, BOM
constexpr std::string_view kMarks[] = {">", "*", "-", "|", "#", "\xe2\x80\xa2"};  // quotes, bullets

bool eat(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <std::size_t N>
bool eat_any(std::string_view& text, const std::string_view (&choices)[N]) {
  for (std::string_view choice : choices) {
    if (eat(text, choice)) return true;
  }
  return false;
}

void eat_blanks(std::string_view& text) {
  while (eat_any(text, kBlanks)) {
  }
}

bool only_blanks(std::string_view text) {
  eat_blanks(text);
  return text.empty() || text == "\r";
}

template <typename Number>
bool eat_number(std::string_view& text, Number& out) {
  eat_blanks(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool eat_words(std::string_view& text, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words) {
    eat_blanks(text);
    if (!eat(text, word)) return false;
  }
  return true;
}

bool is_count(std::int64_t n) { return n >= 0 && n <= kMaxNumber; }

Line message_line(std::string_view text) {
  MessageLine line;
  if (!eat_number(text, line.number) || !eat_words(text, {"received", "|", "Timestamp:"}) ||
      !eat_number(text, line.stamp_ms) || !eat_words(text, {"|", "Latency:"}) || !eat_number(text, line.latency_ms) ||
      !only_blanks(text)) {
    return UnknownLine{};
  }
  const bool plausible = is_count(line.number) && line.stamp_ms >= 0 && line.stamp_ms <= kMaxStampMs &&
                         std::isfinite(line.latency_ms) && std::abs(line.latency_ms) <= kMaxLatencyMs;
  if (!plausible) return UnknownLine{};
  return line;
}

Line queue_line(std::string_view text) {
  QueueLine line;
  if (!eat_number(text, line.length) || !only_blanks(text) || !is_count(line.length)) return UnknownLine{};
  return line;
}

Line queue_full_line(std::string_view text) {
  QueueFullLine line;
  if (!eat_number(text, line.length) || !eat_words(text, {"messages awaiting delivery"}) || !is_count(line.length)) {
    return UnknownLine{};
  }
  return line;
}

constexpr std::string_view kMessage = "Message ", kQueue = "IN QUEUE:", kQueueFull = "Local producer queue is full (";

/// Whether this may be what a logger puts before its line: "[INFO] ", "INFO:root:", "2026-01-01 10:00:00 ", "app[7]: ",
/// "consumer-1  | ". Program text is quoted, and prose has no such signs.
bool is_log_prefix(std::string_view text) {
  if (text.find_first_of("\"'`()\\") != std::string_view::npos) return false;
  if (std::string_view(" \t:|]").find(text.back()) == std::string_view::npos) return false;
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text.ends_with(':') || text.ends_with('|') || text.find_first_of("[0123456789") != std::string_view::npos;
}

}  // namespace

Line parse_line(std::string_view text) {
  if (only_blanks(text)) return BlankLine{};
  while (eat_any(text, kBlanks) || eat_any(text, kMarks)) {
  }
  const auto start = std::min({text.find(kMessage), text.find(kQueue), text.find(kQueueFull)});
  if (start == std::string_view::npos || (start > 0 && !is_log_prefix(text.substr(0, start)))) return UnknownLine{};
  text.remove_prefix(start);
  if (eat(text, kMessage)) return message_line(text);
  if (eat(text, kQueue)) return queue_line(text);
  eat(text, kQueueFull);
  return queue_full_line(text);
}

void LineSplitter::feed(std::string_view chunk) {
  while (!chunk.empty()) {
    const std::size_t end = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, end);
    if (end != std::string_view::npos && !pending_) {
      emit(piece.substr(0, kMaxLine));
    } else {
      partial_.append(piece.substr(0, kMaxLine - partial_.size()));
      pending_ = true;
      if (end != std::string_view::npos) finish();
    }
    if (end == std::string_view::npos) return;
    chunk.remove_prefix(end + 1);
  }
}

void LineSplitter::finish() {
  if (!pending_) return;
  emit(partial_);
  partial_.clear();
  pending_ = false;
}

void LineSplitter::emit(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  on_line_(line);
}

}  // namespace weir::bench
