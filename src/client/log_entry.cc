#include "client/log_entry.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cstring>
#include <vector>

namespace weir::client {

namespace {

/// Length of the valid UTF-8 sequence at `at`, or 0. Overlong forms, surrogates and what is above U+10FFFF are not
/// valid.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? std::uint8_t(text[at + i]) : std::uint8_t(0); };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (int c = 0x20; c < 0x80; ++c) plain[std::size_t(c)] = c != '"' && c != '\\';
  return plain;
}();

/// The text as the inside of a JSON string. Returns how many bytes were replaced.
std::size_t append_escaped(std::string& out, std::string_view text) {
  std::size_t bad = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t run = i;
    while (run < text.size() && kPlain[std::uint8_t(text[run])]) ++run;
    out.append(text, i, run - i);
    if ((i = run) == text.size()) break;
    const char c = text[i];
    if (std::uint8_t(c) >= 0x80) {
      if (const std::size_t length = utf8_length(text, i); length > 0) {
        out.append(text, i, length);
        i += length;
      } else {
        out += "\xEF\xBF\xBD";
        ++bad;
        ++i;
      }
      continue;
    }
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      case '\n': out += "\\n"; break;
      default: {
        constexpr char kHex[] = "0123456789abcdef";
        out += "\\u00";
        out += kHex[std::uint8_t(c) >> 4];
        out += kHex[c & 15];
      }
    }
    ++i;
  }
  return bad;
}

bool is_boundary(char c) {
  switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case '<':
    case '>':
    case ':': return true;
    default: return false;
  }
}

struct LevelWord {
  std::string_view word;
  std::string_view level;
};
constexpr LevelWord kLevels[] = {
    {"TRACE", "TRACE"},  {"DEBUG", "DEBUG"}, {"INFO", "INFO"},   {"NOTICE", "NOTICE"}, {"WARN", "WARN"},
    {"WARNING", "WARN"}, {"ERR", "ERROR"},   {"ERROR", "ERROR"}, {"CRIT", "CRITICAL"}, {"CRITICAL", "CRITICAL"},
    {"ALERT", "ALERT"},  {"EMERG", "EMERG"}, {"FATAL", "FATAL"}};

}  // namespace

std::size_t append_log_entry(std::string& out, std::string_view server_id, std::string_view level,
                             std::string_view message, std::int64_t timestamp) {
  out.reserve(out.size() + server_id.size() + level.size() + message.size() + 80);
  out += "{\"server_id\":\"";
  std::size_t bad = append_escaped(out, server_id);
  out += "\",\"level\":\"";
  bad += append_escaped(out, level);
  out += "\",\"message\":\"";
  bad += append_escaped(out, message);
  out += "\",\"timestamp\":";
  out += fmt::format_int(timestamp).c_str();
  out += '}';
  return bad;
}

std::string to_json(const LogEntry& entry) {
  std::string out;
  append_log_entry(out, entry.server_id, entry.level, entry.message, entry.timestamp);
  return out;
}

std::string_view level_of(std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    if (is_boundary(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < line.size() && !is_boundary(line[end])) ++end;
    const std::string_view word = line.substr(i, end - i);
    if (word.size() >= 3 && word.size() <= 8 && word[0] >= 'A' && word[0] <= 'W') {
      for (const auto& known : kLevels) {
        if (word == known.word) return known.level;
      }
    }
    i = end;
  }
  return "INFO";
}

bool is_urgent(std::string_view level) {
  for (const std::string_view urgent : {"ERROR", "FATAL", "CRITICAL", "ALERT", "EMERG", "ERR", "CRIT"}) {
    if (level == urgent) return true;
  }
  return false;
}

// ---- Reading -------------------------------------------------------------------------------------------------------

struct LogEntryParser::State {
  simdjson::ondemand::parser parser;
  std::vector<char> padded;  // simdjson reads a little past the end

  /// Empty when all is well, else what is wrong.
  std::string read(std::string_view json, LogEntry& entry);
};

LogEntryParser::LogEntryParser() : state_(std::make_unique<State>()) {}
LogEntryParser::~LogEntryParser() = default;
LogEntryParser::LogEntryParser(LogEntryParser&&) noexcept = default;
LogEntryParser& LogEntryParser::operator=(LogEntryParser&&) noexcept = default;

std::string LogEntryParser::State::read(std::string_view json, LogEntry& entry) {
  padded.resize(json.size() + simdjson::SIMDJSON_PADDING);
  std::memcpy(padded.data(), json.data(), json.size());
  std::memset(padded.data() + json.size(), 0, simdjson::SIMDJSON_PADDING);

  simdjson::ondemand::document document;
  if (const auto error = parser.iterate(padded.data(), json.size(), padded.size()).get(document)) {
    return simdjson::error_message(error);
  }
  simdjson::ondemand::object object;
  if (document.get_object().get(object)) return "not an object";
  std::array<bool, 4> seen{};
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return simdjson::error_message(error);
    constexpr std::array<std::string_view, 4> names{"server_id", "level", "message", "timestamp"};
    std::size_t which = 0;
    while (which < names.size() && key != names[which]) ++which;
    if (which == names.size()) continue;
    if (seen[which]) return fmt::format("{} is there twice", names[which]);
    seen[which] = true;
    simdjson::ondemand::value value;
    if (const auto error = field.value().get(value)) return simdjson::error_message(error);
    if (which == 3) {
      if (value.get_int64().get(entry.timestamp)) return "timestamp is not an integer";
      continue;
    }
    std::string_view text;
    if (value.get_string().get(text)) return fmt::format("{} is not a string", names[which]);
    (which == 0 ? entry.server_id : which == 1 ? entry.level : entry.message) = text;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    constexpr std::array<const char*, 4> names{"server_id", "level", "message", "timestamp"};
    if (!seen[i]) return fmt::format("{} is missing", names[i]);
  }
  const char* rest = nullptr;
  if (!document.current_location().get(rest)) return "something follows the object";
  return {};
}

Result<LogEntry> LogEntryParser::parse(std::string_view json) {
  LogEntry entry;
  std::string wrong;
  try {
    wrong = state_->read(json, entry);
  } catch (const simdjson::simdjson_error& error) {  // iterating over members throws
    wrong = error.what();
  }
  if (!wrong.empty()) return fail(ErrorKind::kInvalid, "not a LogEntry: " + wrong);
  return entry;
}

}  // namespace weir::client
