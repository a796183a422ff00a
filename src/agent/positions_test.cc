// Positions move after the acknowledgement and not before: stops, kills, and anything in any order.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "agent/agent_world.h"
#include "agent/checkpoint.h"
#include "client/log_entry.h"

namespace weir::agent {
namespace {

TEST(Agent, PositionIsNotSavedBeforeTheAcknowledgement) {
  World world;
  world.broker.up = false;
  world.lines("/log/app.log", 0, 5000);
  world.start();
  world.run(5s);
  EXPECT_GT(world.agent->stats().in_memory, 0u);
  world.kill();
  const auto saved = load_checkpoint(world.files, "/state/checkpoint.json").value();
  for (const auto& mark : saved) EXPECT_EQ(mark.position, 0u);
  world.broker.up = true;
  world.start();
  world.run(5s);
  world.expect_lines(5000);
}

TEST(Agent, PositionMovesOverARejectedEntryOnlyWhenItIsKept) {
  World world;
  world.settings.line_limit = 2 * kMiB;
  world.append("/log/app.log", "small\n" + std::string(1'126'653, 'x') + "\n");
  world.start();
  bool kept_first = false;
  world.files.on_sync([&](const runtime::Path& path) {
    if (path.filename() == "rejected.jsonl") kept_first = true;
    if (!path.filename().string().starts_with("checkpoint.json") || kept_first) return;
    const auto marks = load_checkpoint(world.files, path);
    for (const FileMark& mark : marks.value_or(std::vector<FileMark>{})) EXPECT_LE(mark.position, 6u);
  });
  world.run(3s);
  EXPECT_TRUE(kept_first);
  EXPECT_EQ(load_checkpoint(world.files, "/state/checkpoint.json").value()[0].position, 6 + 1'126'654u);
  world.files.on_sync({});
}

TEST(Agent, FullDiskKeepsTheOldPositionsAndReadingGoesOn) {
  World world;
  world.lines("/log/app.log", 0, 10);
  world.start();
  world.run(2s);
  const auto saved = [&] { return load_checkpoint(world.files, "/state/checkpoint.json").value().at(0).position; };
  const auto before = saved();
  world.lines("/log/app.log", 10, 20);
  world.files.set_free_space(0);
  world.run(3s);
  world.expect_lines(20);
  EXPECT_EQ(saved(), before);  // whole, and older than what was acknowledged
  world.files.set_free_space(std::nullopt);
  world.run(2s);
  EXPECT_GT(saved(), before);
}

TEST(Agent, StopDrainsWhileTheBrokerAnswersAndElseLeavesTheRestInTheFile) {
  World world;
  world.producer_settings.linger = 60s;
  world.lines("/log/app.log", 0, 436);
  world.start();
  world.agent->step();
  world.agent->step();
  world.broker.answering = false;
  EXPECT_GT(world.agent->stop(0s), 0u);
  world.check();
  world.agent.reset();
  world.broker.answering = true;
  world.producer_settings.linger = 0ms;
  world.start();
  world.run(3s);
  const auto all = world.messages();
  const std::set<std::string> distinct(all.begin(), all.end());
  EXPECT_EQ(distinct.size(), 436u);  // some twice, under the same source and position
}

TEST(Agent, ReportsThatComeAfterItsEndTouchNothingOfIt) {
  World world;
  world.lines("/log/app.log", 0, 100);
  world.start();
  world.agent->step();
  world.core->step();
  world.broker.answering = false;
  EXPECT_GT(world.agent->stop(0s), 0u);
  world.agent.reset();
  world.broker.answering = true;
  for (int i = 0; i < 5; ++i) world.core->step();
  EXPECT_TRUE(world.core->finished());
}

TEST(Agent, DamagedCheckpointStopsTheStartAndNamesTheFix) {
  World world;
  world.append("/log/app.log", "a\n");
  ASSERT_TRUE(world.files.make_directories("/state"));
  world.append("/state/checkpoint.json", "{\"version\":1,\"fil");
  const auto opened =
      Agent::open(world.settings, std::make_unique<Producer>(world.broker.producer(world.producer_settings), false),
                  world.files, world.clock);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("move it away"), std::string::npos);
}

RC_GTEST_PROP(Agent, NothingIsLostAndOrderIsKeptWhateverHappens, ()) {
  // Writes, rotations, outages and kill -9 in any order; what arrives twice has the same source and position.
  World world;
  world.settings.key = KeyBy::kSource;  // one partition for each source
  world.producer_settings.buffer_memory = kMiB;
  world.lines("/log/app.log", 0, 1);
  world.start();
  int next = 1, rotation = 0;
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  for (const int what : *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(0, 8))) {
    if (what <= 2) {
      world.lines("/log/app.log", next, next + 300);
      next += 300;
    } else if (what == 3) {
      if (!world.files.exists("/log/app.log")) continue;
      RC_ASSERT(world.files.rename("/log/app.log", "/log/app.log." + std::to_string(++rotation)).has_value());
      world.lines("/log/app.log." + std::to_string(rotation), next, next + 10);
      next += 10;
    } else if (what == 4) {
      world.broker.answering = !world.broker.answering;
    } else if (what == 5) {
      world.kill();
      world.start();
    } else {
      world.run(std::chrono::milliseconds(*rc::gen::inRange(1, 30) * 100), 50ms);
    }
  }
  world.broker.answering = true;
  world.run(12s, 50ms);
  std::map<std::pair<std::string, std::string>, std::string> distinct;
  std::map<std::string, std::uint64_t> last;
  client::LogEntryParser parser;
  for (const auto& record : world.records()) {
    const auto message = parser.parse(*record.value).value().message;
    const std::string source = header(record, "weir.source"), position = header(record, "weir.pos");
    const auto [at, fresh] = distinct.emplace(std::pair(source, position), message);
    RC_ASSERT(at->second == message);
    if (!fresh) continue;
    RC_ASSERT(last[source] <= std::stoull(position));
    last[source] = std::stoull(position);
  }
  std::set<std::string> seen;
  for (const auto& entry : distinct) seen.insert(entry.second);
  RC_ASSERT(distinct.size() == std::size_t(next));
  RC_ASSERT(seen.size() == std::size_t(next));
}

// Sent under an id that is on no disk they could not be told from others after a crash.
TEST(Agent, NothingOfANewFileIsSentBeforeItsIdIsKept) {
  World world;
  world.settings.paths = {"/log"};
  world.append("/log/known.log", "line 0\n");
  world.start();
  world.run(2s);
  world.append("/log/known.log", "line 1\n");
  world.append("/log/new.log", "line 2\nline 3\n");
  world.files.set_free_space(0);
  world.run(3s);
  EXPECT_EQ(world.messages(), (std::vector<std::string>{"line 0", "line 1"})) << "what is known goes on";
  for (int i = 0; i < 10; ++i) {
    world.run(30ms);
    EXPECT_EQ(world.agent->stats().stuck, "the checkpoint could not be written");
  }
  world.files.set_free_space(std::nullopt);
  world.run(3s);
  EXPECT_EQ(world.agent->stats().stuck, "");
  world.expect_lines(4);
  world.kill();
  world.start();
  world.run(3s);
  std::set<std::pair<std::string, std::string>> places;
  for (const auto& record : world.records()) places.emplace(header(record, "weir.source"), header(record, "weir.pos"));
  EXPECT_EQ(places.size(), 4u);
}

TEST(Agent, ANewFileThatIsGoneBeforeItsIdIsKeptHoldsNothingUp) {
  World world;
  world.settings.paths = {"/log"};
  world.settings.deleted_limit = 0;  // else it is held and read when it can be
  world.append("/log/known.log", "line 0\n");
  world.start();
  world.run(2s);
  world.append("/log/new.log", "line 1\n");
  world.files.set_free_space(0);
  world.run(3s);
  EXPECT_NE(world.agent->stats().stuck, "");
  ASSERT_TRUE(world.files.remove("/log/new.log"));
  world.run(60s, 100ms);
  EXPECT_EQ(world.agent->stats().stuck, "");
  world.expect_lines(1);
}

TEST(Agent, WhatIsReadFromStandardInputNeedsNone) {
  World world;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  world.settings.paths = {"/log"};
  world.settings.standard_input = true;
  world.settings.input_descriptor = ends[0];
  world.append("/log/new.log", "line 1\n");
  world.files.set_free_space(0);
  world.start();
  ASSERT_EQ(write(ends[1], "line 0\n", 7), 7);
  world.run(2s);
  EXPECT_EQ(world.messages(), std::vector<std::string>{"line 0"});
  world.agent.reset();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace weir::agent
