// What becomes of lines: text and JSON, unfinished and long ones, bad bytes, what can never be accepted.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "agent/agent_world.h"
#include "agent/checkpoint.h"
#include "agent/followed_file.h"
#include "agent/line_splitter.h"
#include "client/log_entry.h"

namespace weir::agent {
namespace {

TEST(Agent, WrapsLinesAndPassesEntriesAndSendsErrorsToTheirOwnTopic) {
  World world;
  const std::string entry = R"({"server_id":"web-7","level":"FATAL","message":"x","timestamp":5,"more":1})";
  world.append("/log/app.log", "plain [WARN] text\r\n" + entry + "\nERR: broken\n");
  world.start();
  world.run(100ms);
  const auto records = world.records();
  ASSERT_EQ(records.size(), 3u);
  std::map<std::string, ConsumedRecord> by_position;
  for (const auto& record : records) by_position[header(record, "weir.pos")] = record;
  EXPECT_EQ(by_position["0"].partition.topic, "logs");
  EXPECT_EQ(by_position["0"].key, "host");
  const auto wrapped = client::LogEntryParser().parse(*by_position["0"].value).value();
  EXPECT_EQ(wrapped.message, "plain [WARN] text");
  EXPECT_EQ(wrapped.level, "WARN");
  EXPECT_EQ(wrapped.server_id, "host");
  EXPECT_EQ(wrapped.timestamp, to_unix_ms(by_position["0"].timestamp));
  EXPECT_EQ(by_position["19"].value, entry);
  EXPECT_EQ(by_position["19"].key, "web-7");
  EXPECT_EQ(by_position["19"].partition.topic, "logs_error");
  EXPECT_EQ(by_position[std::to_string(19 + entry.size() + 1)].partition.topic, "logs_error");
  EXPECT_EQ(header(records[0], "weir.source").size(), 14u);
}

TEST(Agent, LastLineWithoutItsEndWaitsAndIsNeitherCutNorSentTwice) {
  World world;
  world.append("/log/app.log", "{\"a\":1");
  world.start();
  world.run(100ms);
  EXPECT_EQ(world.messages().size(), 0u);
  world.append("/log/app.log", "}\n");
  world.run(500ms);
  EXPECT_EQ(world.messages(), std::vector<std::string>{"{\"a\":1}"});
  world.append("/log/app.log", "tail");
  world.run(4s);
  EXPECT_EQ(world.messages().size(), 1u);
  world.run(2s);
  ASSERT_EQ(world.messages().size(), 2u);
  EXPECT_EQ(world.messages()[1], "tail");
  EXPECT_EQ(header(world.records()[1], "weir.unterminated"), "1");
  world.append("/log/app.log", " more\n");
  world.run(1s);
  EXPECT_EQ(world.messages().size(), 3u);
  EXPECT_EQ(world.messages()[2], " more");
  EXPECT_EQ(world.agent->stats().unterminated, 1u);
}

TEST(FollowedFile, WhatIsAppendedAfterTheLastReadIsNotPartOfTheLastLine) {
  World world;
  world.append("/log/app.log", "half");
  struct Taker final : EntryTaker {
    bool take(const Entry& entry) override {
      lines.emplace_back(entry.text);
      return true;
    }
    void pass(std::uint64_t) override {}
    std::vector<std::string> lines;
  } taker;
  auto file = world.files.open("/log/app.log", runtime::OpenMode::kRead).value();
  FollowedFile followed("/log/app.log", file, file->status().value(), {}, world.settings, MonoTime{});
  std::string buffer(256 * kKiB, '\0');
  EXPECT_EQ(followed.read(MonoTime{}, buffer, taker).value(), FollowedFile::Outcome::kIdle);
  world.append("/log/app.log", " of it\nnext\n");
  EXPECT_TRUE(followed.finish(buffer, taker).value());
  EXPECT_EQ(taker.lines, std::vector<std::string>{"half"});
}

TEST(Agent, LongLineIsMarkedOrSkippedAndCounted) {
  for (const auto policy : {LongLines::kTruncate, LongLines::kSkip}) {
    World world;
    world.settings.long_lines = policy;
    world.append("/log/app.log", "A\n" + std::string(kMiB, 'x') + "\nB\n");
    world.start();
    world.run(2s);
    const bool cut = policy == LongLines::kTruncate;
    EXPECT_EQ(world.messages().size(), cut ? 3u : 2u);
    int marked = 0;
    for (const auto& record : world.records()) marked += header(record, "weir.truncated") == "1";
    EXPECT_EQ(marked, cut ? 1 : 0);
    EXPECT_EQ(world.agent->stats().long_lines, 1u);
    EXPECT_EQ(long_line_notice("/log/app.log", 2, world.settings),
              std::string("/log/app.log: the line at byte 2 is longer than 160KiB (line_limit) and is ") +
                  (cut ? "cut there" : "left out") + ", as later ones will be");
    EXPECT_EQ(load_checkpoint(world.files, "/state/checkpoint.json").value()[0].position, 2 + kMiB + 1 + 2);
  }
}

TEST(Agent, LongestLineFitsARequestHoweverItIsEscaped) {
  World world;
  world.append("/log/app.log", std::string(AgentSettings().line_limit, '\x01') + "\n");
  world.start();
  world.run(2s);
  ASSERT_EQ(world.records().size(), 1u);
  EXPECT_EQ(header(world.records()[0], "weir.truncated"), "");
}

TEST(Agent, BadBytesArriveVisiblyDamagedAndAreCounted) {
  World world;
  world.append("/log/app.log", "a\xFF\n\xC0\xAF\ncaf\xE9\n" + std::string(4096, '\0') + "text\n");
  world.start();
  world.run(1s);
  EXPECT_EQ(world.messages().size(), 4u);
  EXPECT_EQ(world.agent->stats().bad_utf8_bytes, 4u);
  EXPECT_EQ(world.agent->stats().long_lines, 0u);
}

TEST(Agent, RecordThatCanNeverBeAcceptedIsKeptApartAndBlocksNothing) {
  World world;
  world.settings.line_limit = 2 * kMiB;
  world.append("/log/app.log", "small 1\n" + std::string(1'126'653, 'x') + "\nsmall 2\n");
  world.start();
  world.run(2s);
  const auto all = world.messages();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()), (std::set<std::string>{"small 1", "small 2"}));
  const auto stats = world.agent->stats();
  EXPECT_EQ(stats.rejected, (metrics::Reasons{{"too_large", 1}}));
  EXPECT_EQ(stats.in_memory, 0u);
  const auto kept = world.files.read_all("/state/rejected.jsonl", 4 * kMiB).value();
  EXPECT_NE(as_text(kept).find("\"position\":\"8\""), std::string_view::npos);
  EXPECT_EQ(load_checkpoint(world.files, "/state/checkpoint.json").value()[0].position, 8 + 1'126'654 + 8u);
}

}  // namespace
}  // namespace weir::agent
