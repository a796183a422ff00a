#include "client/log_entry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir::client {
namespace {

RC_GTEST_PROP(LogEntry, WhatIsWrittenIsReadBack, (std::int64_t timestamp)) {
  // Any text of valid UTF-8, control characters included.
  const auto text = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 0x500));
  std::string message;
  for (const auto c : text) {
    if (c < 0x80) {
      message += char(c);
    } else {
      message += char(0xC0 | (c >> 6));
      message += char(0x80 | (c & 63));
    }
  }
  const LogEntry entry{"web-1", "WARN", message, timestamp};
  RC_ASSERT(LogEntryParser().parse(to_json(entry)).value() == entry);
}

TEST(LogEntry, BytesThatAreNotUtf8BecomeOneReplacementEachAndAreCounted) {
  const std::pair<std::string, std::size_t> cases[] = {{"a\xFF", 1},        {"\xC0\xAF", 2},  {"\xED\xA0\x80", 3},
                                                       {"cut \xE4\xB8", 2}, {"caf\xE9 x", 1}, {"\xF4\x90\x80\x80", 4},
                                                       {"\xE4\xB8\xAD", 0}};
  for (const auto& [text, bad] : cases) {
    std::string json;
    EXPECT_EQ(append_log_entry(json, "h", "INFO", text, 1), bad) << json;
    const auto entry = LogEntryParser().parse(json);
    ASSERT_TRUE(entry) << json;
    std::size_t marks = 0;
    for (std::size_t at = 0; (at = entry->message.find("\xEF\xBF\xBD", at)) != std::string::npos; ++at) ++marks;
    EXPECT_EQ(marks, bad);
  }
}

RC_GTEST_PROP(LogEntry, AnyBytesGiveValidJson, (std::vector<std::uint8_t> bytes)) {
  std::string json;
  append_log_entry(json, "h", "INFO", std::string(bytes.begin(), bytes.end()), 1);
  RC_ASSERT(LogEntryParser().parse(json).has_value());
}

TEST(LogEntry, LevelIsTheFirstWordThatStandsAlone) {
  const std::pair<const char*, const char*> cases[] = {{"2026-01-01 ERROR disk", "ERROR"},
                                                       {"[WARN] x ERROR", "WARN"},
                                                       {"WARNING: hot", "WARN"},
                                                       {"kernel: ERR: bad", "ERROR"},
                                                       {"x CRIT", "CRITICAL"},
                                                       {"<EMERG>", "EMERG"},
                                                       {"FATAL", "FATAL"},
                                                       {"(DEBUG)", "DEBUG"},
                                                       {"an error occurred", "INFO"},
                                                       {"ERRORS everywhere", "INFO"},
                                                       {"level=ERROR", "INFO"},
                                                       {"Error: x", "INFO"},
                                                       {"NOTICE\tx", "NOTICE"},
                                                       {"a,ERROR,b INFO", "INFO"},
                                                       {"", "INFO"},
                                                       {"app:ALERT:x", "ALERT"},
                                                       {"TRACE ERROR", "TRACE"},
                                                       {"CRITICAL{", "CRITICAL"}};
  for (const auto& [line, level] : cases) EXPECT_EQ(level_of(line), level) << line;
  for (const char* level : {"ERROR", "FATAL", "CRITICAL", "ALERT", "EMERG"}) EXPECT_TRUE(is_urgent(level));
  for (const char* level : {"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "error"}) EXPECT_FALSE(is_urgent(level));
}

TEST(LogEntry, WhatIsNotAnEntryIsRefusedWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"[]", "not an object"},
      {"{}", "server_id is missing"},
      {"plain text", ""},
      {R"({"server_id":"a","level":"INFO","message":"m"})", "timestamp is missing"},
      {R"({"server_id":"a","level":"INFO","message":"m","timestamp":"1"})", "timestamp is not an integer"},
      {R"({"server_id":"a","level":"INFO","message":"m","timestamp":1.5})", "timestamp is not an integer"},
      {R"({"server_id":1,"level":"INFO","message":"m","timestamp":1})", "server_id is not a string"},
      {R"({"server_id":"a","level":"INFO","message":"m","timestamp":1,"level":"WARN"})", "level is there twice"},
      {R"({"server_id":"a","level":"INFO","message":"m","timestamp":1} x)", ""},
      {R"({"server_id":"a","level":"INFO","message":"m","timestamp":1)", ""},
      {"{\"server_id\":\"\xFF\",\"level\":\"INFO\",\"message\":\"m\",\"timestamp\":1}", ""}};
  LogEntryParser parser;
  for (const auto& [json, why] : cases) {
    const auto entry = parser.parse(json);
    ASSERT_FALSE(entry) << json;
    EXPECT_NE(entry.error().message.find(why), std::string::npos) << entry.error().message;
  }
  EXPECT_TRUE(parser.parse(R"( {"extra":{"a":[1,{}]},"timestamp":-5,"message":"","level":"x","server_id":"s"} )"));
}

}  // namespace
}  // namespace weir::client
