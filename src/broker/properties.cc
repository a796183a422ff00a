#include "broker/properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::broker {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\f'; }
bool line_end(char c) { return c == '\n' || c == '\r'; }

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

/// Four hexadecimal digits at the front of `text`, which are taken from it.
std::optional<std::uint32_t> take_hex(std::string_view& text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  text.remove_prefix(4);
  return value;
}

/// What stands behind \u: one unit of UTF-16, or two that belong together.
std::optional<std::uint32_t> take_point(std::string_view& text) {
  const auto high = take_hex(text);
  if (!high || *high < 0xd800 || *high > 0xdfff) return high;
  if (*high > 0xdbff || !text.starts_with("\\u")) return std::nullopt;
  text.remove_prefix(2);
  const auto low = take_hex(text);
  if (!low || *low < 0xdc00 || *low > 0xdfff) return std::nullopt;
  return 0x10000 + ((*high - 0xd800) << 10) + (*low - 0xdc00);
}

/// Nothing for a broken \u.
std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c != '\\' || text.empty()) {
      out += c;
      continue;
    }
    const char escaped = text.front();
    text.remove_prefix(1);
    switch (escaped) {
      case 't': out += '\t'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 'f': out += '\f'; break;
      case 'u': {
        const auto point = take_point(text);
        if (!point) return std::nullopt;
        append_utf8(out, *point);
        break;
      }
      default: out += escaped;
    }
  }
  return out;
}

/// Cuts a text into logical lines, still escaped: without comments, empty lines and the blanks they begin with.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  /// The next one and the number of its first line; false at the end.
  bool next(std::string& line, int& number) {
    line.clear();
    while (!text_.empty()) {
      skip_blanks();
      if (line.empty()) {
        number = number_;
        if (text_.starts_with('#') || text_.starts_with('!')) {  // No backslash makes a comment longer.
          while (!text_.empty() && !line_end(text_.front())) text_.remove_prefix(1);
        }
      }
      const bool goes_on = take_line(line);
      if (!goes_on && !line.empty()) return true;
    }
    return !line.empty();
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && blank(text_.front())) text_.remove_prefix(1);
  }

  /// Appends the rest of this line; true when it ends in a backslash, which is left out.
  bool take_line(std::string& line) {
    bool escaped = false;
    for (; !text_.empty() && !line_end(text_.front()); text_.remove_prefix(1)) {
      escaped = text_.front() == '\\' && !escaped;
      line += text_.front();
    }
    if (escaped) line.pop_back();
    if (!text_.empty()) {
      text_.remove_prefix(text_.starts_with("\r\n") ? 2 : 1);
      ++number_;
    }
    return escaped;
  }

  std::string_view text_;
  int number_ = 1;
};

}  // namespace

Result<std::vector<Property>> parse_properties(std::string_view text) {
  std::vector<Property> all;
  Lines lines(text);
  std::string line;
  for (int number = 0; lines.next(line, number);) {
    std::string_view rest = line;
    std::size_t end = 0;
    for (; end < rest.size() && rest[end] != '=' && rest[end] != ':' && !blank(rest[end]); ++end) {
      if (rest[end] == '\\') ++end;
    }
    end = std::min(end, rest.size());
    const auto name = unescape(rest.substr(0, end));
    // Blanks, one separator at most, blanks.
    bool separated = false;
    for (; end < rest.size(); ++end) {
      const bool separator = !separated && (rest[end] == '=' || rest[end] == ':');
      if (!separator && !blank(rest[end])) break;
      separated |= separator;
    }
    const auto value = unescape(rest.substr(end));
    if (!name || !value) return fail(ErrorKind::kInvalid, fmt::format("{}: a broken \\u escape", number));
    all.push_back({*name, *value, number});
  }
  return all;
}

}  // namespace weir::broker
