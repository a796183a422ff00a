// The agent over a broker and a file system in memory, in virtual time. Every test ends with the books balanced.
#include "agent/agent.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/checkpoint.h"
#include "agent/followed_file.h"
#include "agent/generator.h"
#include "agent/line_splitter.h"
#include "client/log_entry.h"
#include "client/memory_broker.h"
#include "client/producer_core.h"
#include "runtime/memory_file_system.h"
#include "runtime/temp_directory.h"

namespace weir::agent {
namespace {

using namespace std::chrono_literals;

/// A machine with an agent on it.
struct World {
  ManualClock clock;
  client::MemoryBroker broker{clock};
  runtime::MemoryFileSystem files;
  AgentSettings settings{.paths = {"/log/app.log"}, .host_name = "host", .state_directory = "/state"};
  ProducerSettings producer_settings;
  std::shared_ptr<ProducerCore> core;
  std::unique_ptr<Agent> agent;

  World() {
    EXPECT_TRUE(files.make_directories("/log"));
    broker.create_topic("logs", 2);
    broker.create_topic("logs_error", 2);
    producer_settings.when_full = WhenFull::kReject;
    producer_settings.linger = 0ms;
  }
  void start() {
    core = broker.producer(producer_settings);
    auto opened = Agent::open(settings, std::make_unique<Producer>(core, false), files, clock);
    ASSERT_TRUE(opened) << opened.error().message;
    agent = std::move(*opened);
  }
  void run(Duration span, Duration step = 10ms) {
    for (Duration passed{}; passed < span; passed += step) {
      agent->step();
      for (int i = 0; i < 3; ++i) core->step();
      clock.advance(step);
    }
    agent->step();
    check();
  }
  /// Ends the process between two instructions: what it would write on the way out is not written.
  void kill() {
    const auto saved = files.read_all("/state/checkpoint.json", kMiB);
    agent.reset();
    core.reset();
    if (saved) {
      ASSERT_TRUE(files.replace("/state/checkpoint.json", *saved));
    } else {
      (void)files.remove("/state/checkpoint.json");
    }
  }
  void append(const std::string& path, const std::string& text) {
    auto file = files.open(path, runtime::OpenMode::kCreate);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(as_bytes(text)));
  }
  void rewrite(const std::string& path, const std::string& text) {
    auto file = files.open(path, runtime::OpenMode::kCreateEmpty);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(as_bytes(text)));
  }
  void lines(const std::string& path, int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
    append(path, text);
  }
  std::vector<ConsumedRecord> records() const {
    std::vector<ConsumedRecord> all;
    for (const char* topic : {"logs", "logs_error"}) {
      for (int p = 0; p < 2; ++p) {
        for (auto& record : broker.records({topic, PartitionId(p)})) all.push_back(std::move(record));
      }
    }
    return all;
  }
  /// Messages, in the order of the log.
  std::vector<std::string> messages() const {
    std::vector<std::string> all;
    client::LogEntryParser parser;
    for (const auto& record : records()) all.push_back(parser.parse(record.value.value_or("")).value().message);
    return all;
  }
  void check() const {
    const auto wrong = agent->stats().tally().check();
    EXPECT_FALSE(wrong) << *wrong;
  }
  /// 0, 1, 2, ... each once.
  void expect_lines(int count) const {
    auto all = messages();
    ASSERT_EQ(all.size(), std::size_t(count));
    std::set<std::string> distinct(all.begin(), all.end());
    EXPECT_EQ(distinct.size(), all.size());
    for (int i = 0; i < count; ++i) EXPECT_TRUE(distinct.contains("line " + std::to_string(i))) << i;
  }
};

std::string header(const ConsumedRecord& record, std::string_view name) {
  for (const auto& h : record.headers) {
    if (h.name == name) return h.value.value_or("");
  }
  return "";
}

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

TEST(Agent, RenameRotationLosesNothingAlsoWhenTheNewFileIsLate) {
  World world;
  world.lines("/log/app.log", 0, 10);
  world.start();
  world.run(100ms);
  ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.1"));
  world.lines("/log/app.log.1", 10, 20);  // the writer has not noticed yet
  world.run(3s);
  world.lines("/log/app.log.1", 20, 21);
  world.append("/log/app.log.1", "line 21");  // and never ends its last line
  world.lines("/log/app.log", 22, 30);
  world.run(10s);
  world.expect_lines(30);
  EXPECT_EQ(world.agent->stats().files, 1u);  // the rotated one has been let go
}

TEST(Agent, RotationsAndNewFilesBehindAClosedGateAreAllFound) {
  // Field: hold the broker 60 s, rotate twice and create one new file meanwhile, then release.
  World world;
  world.settings.paths = {"/log"};
  world.producer_settings.buffer_memory = kMiB;
  world.start();
  world.broker.answering = false;
  int next = 0;
  for (int rotation = 0; rotation < 3; ++rotation) {
    world.lines("/log/app.log", next, next + 5000);
    next += 5000;
    world.run(20s, 100ms);
    if (rotation < 2) {
      ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app." + std::to_string(rotation)));
    }
  }
  world.lines("/log/new.log", next, next + 100);
  next += 100;
  world.run(2s, 100ms);
  const auto held = world.agent->stats();
  EXPECT_EQ(held.files, 4u);
  EXPECT_GT(held.unread_bytes, 0u);  // the files are the buffer
  EXPECT_LT(held.read, std::uint64_t(next));
  EXPECT_LE(held.peak_buffer_bytes, kMiB + Agent::reader_memory(world.settings));
  EXPECT_GT(to_seconds(held.paused), 50);
  world.broker.answering = true;
  world.run(10s);
  world.expect_lines(next);
  EXPECT_EQ(world.agent->stats().rejected.size() + world.agent->stats().shed.size(), 0u);
}

TEST(Agent, TruncatedInPlaceIsReadAgainFromItsStart) {
  World world;
  world.append("/log/app.log", "old 1\nold 2\nold 3\n");
  world.start();
  world.run(100ms);
  world.rewrite("/log/app.log", "new 1\n");
  world.run(1s);
  EXPECT_EQ(world.agent->stats().truncations, 1u);
  // Regrown beyond the old position between two looks: the bytes before the position tell.
  world.rewrite("/log/app.log", "newer 1\nnewer 2\nnewer 3\n");
  world.run(1s);
  EXPECT_EQ(world.agent->stats().truncations, 2u);
  const auto all = world.messages();
  EXPECT_EQ(std::multiset<std::string>(all.begin(), all.end()),
            (std::multiset<std::string>{"old 1", "old 2", "old 3", "new 1", "newer 1", "newer 2", "newer 3"}));
  std::set<std::string> sources;
  for (const auto& record : world.records()) sources.insert(header(record, "weir.source"));
  EXPECT_EQ(sources.size(), 3u);
}

TEST(Agent, TruncationWhileReadingLagsSaysWhatWasLost) {
  World world;
  world.lines("/log/app.log", 0, 20'000);
  world.producer_settings.buffer_memory = kMiB;
  world.start();
  world.broker.answering = false;
  world.run(1s);
  const auto unread = world.agent->stats().unread_bytes;
  ASSERT_GT(unread, 0u);
  world.rewrite("/log/app.log", "new\n");
  world.broker.answering = true;
  world.run(2s);
  EXPECT_EQ(world.agent->stats().lost_bytes, (metrics::Reasons{{"truncated", unread}}));
}

TEST(Agent, FilesThatBeginAlikeAndTinyFilesAreToldApart) {
  World world;
  const std::string head(1024, '#');
  world.settings.paths = {"/log"};
  world.append("/log/a.log", head + "\na\n");
  world.append("/log/b.log", head + "\nb\n");
  world.append("/log/c.log", "123456789\n");
  world.start();
  world.run(1s);
  EXPECT_EQ(world.messages().size(), 5u);
  ASSERT_TRUE(world.agent->stop(0s) == 0u);
  world.kill();
  world.start();
  world.append("/log/b.log", "b2\n");
  world.run(1s);
  EXPECT_EQ(world.messages().size(), 6u);
}

TEST(Agent, NewFileOnAReusedInodeIsReadFromItsStart) {
  World world;
  world.append("/log/app.log", "old line that is long enough\n");
  world.start();
  world.run(2s);
  world.kill();
  // The same inode, other content, and longer than the old position.
  world.rewrite("/log/app.log", "new line 1\nnew line 2\nnew line 3\nnew line 4\n");
  world.start();
  world.run(1s);
  const auto all = world.messages();
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(world.agent->stats().truncations, 1u);
}

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

TEST(Agent, WithNothingToSendABrokerThatIsAwayHoldsUpNothing) {
  World world;
  world.broker.up = false;
  world.start();
  world.run(1s);
  EXPECT_FALSE(world.agent->stats().stuck);
  world.lines("/log/app.log", 0, 1);
  world.run(1s);
  EXPECT_TRUE(world.agent->stats().stuck);
  world.broker.up = true;
  world.run(1s);
  EXPECT_FALSE(world.agent->stats().stuck);
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

TEST(Agent, ManyRotationsLeaveNoMoreBehindThanThereAreFiles) {
  World world;
  world.start();
  for (int i = 0; i < 20; ++i) {
    world.lines("/log/app.log", i, i + 1);
    world.run(10s, 100ms);
    ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.1"));  // the one before is gone
  }
  world.append("/log/app.log", "line 20\n");
  world.run(10s, 100ms);
  world.expect_lines(21);
  world.run(70min, 10s);
  EXPECT_LE(load_checkpoint(world.files, "/state/checkpoint.json").value().size(), 2u);
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
  std::string buffer(128 * kKiB, '\0');
  EXPECT_EQ(followed.read(MonoTime{}, buffer, taker).value(), FollowedFile::Outcome::kIdle);
  world.append("/log/app.log", " of it\nnext\n");
  EXPECT_TRUE(followed.finish(buffer, taker).value());
  EXPECT_EQ(taker.lines, std::vector<std::string>{"half"});
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

TEST(Agent, LongLineIsMarkedOrSkippedAndCounted) {
  for (const auto policy : {LongLines::kTruncate, LongLines::kSkip}) {
    World world;
    world.settings.long_lines = policy;
    world.append("/log/app.log", "A\n" + std::string(1024 * 1024, 'x') + "\nB\n");
    world.start();
    world.run(2s);
    const bool cut = policy == LongLines::kTruncate;
    EXPECT_EQ(world.messages().size(), cut ? 3u : 2u);
    int marked = 0;
    for (const auto& record : world.records()) marked += header(record, "weir.truncated") == "1";
    EXPECT_EQ(marked, cut ? 1 : 0);
    EXPECT_EQ(world.agent->stats().long_lines, 1u);
    EXPECT_EQ(long_line_notice("/log/app.log", 2, world.settings),
              std::string("/log/app.log: the line at byte 2 is longer than 64KiB (line_limit) and is ") +
                  (cut ? "cut there" : "left out") + ", as later ones will be");
    EXPECT_EQ(load_checkpoint(world.files, "/state/checkpoint.json").value()[0].position, 2 + 1024 * 1024 + 1 + 2u);
  }
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

TEST(Agent, ReadsNoFasterThanThePipelineTakes) {
  // Field: 50,000 lines at once, the sink takes 1,000 a second, the cap is 5 MB: all arrive, none refused, the file
  // waits.
  World world;
  world.producer_settings.messages_per_second = 1000;
  world.producer_settings.buffer_memory = 5 * kMiB;
  world.lines("/log/app.log", 0, 50'000);
  world.start();
  world.run(10s, 50ms);
  const auto half_way = world.agent->stats();
  EXPECT_NEAR(double(half_way.acked), 11'000, 1500);
  EXPECT_LT(half_way.in_memory, 1000u);  // a short queue, not five megabytes of it
  EXPECT_GT(half_way.unread_bytes, 300'000u);
  world.run(45s, 50ms);
  world.expect_lines(50'000);
  EXPECT_TRUE(world.agent->stats().rejected.empty());
}

TEST(Agent, DeletedFilesAreReadToTheEndOrGivenUpAboveTheLimitAndSaid) {
  for (const bool limited : {false, true}) {
    World world;
    if (limited) world.settings.deleted_limit = 100'000;
    world.producer_settings.buffer_memory = kMiB;
    world.broker.answering = false;
    int next = 0;
    const auto write = [&](int count) {
      world.lines("/log/app.log", next, next + count);
      next += count;
    };
    write(1);
    world.start();
    for (int i = 0; i < 5; ++i) {
      write(5000);
      world.run(2s, 100ms);
      ASSERT_TRUE(world.files.rename("/log/app.log", "/log/old"));
      write(1);
      world.run(2s, 100ms);
      ASSERT_TRUE(world.files.remove("/log/old"));
    }
    world.run(3s, 100ms);
    const auto held = world.agent->stats();
    world.broker.answering = true;
    world.run(20s);
    if (limited) {
      EXPECT_LE(held.deleted_open_bytes, 100'000u);
      EXPECT_GT(held.lost_bytes.at("given_up"), 0u);
    } else {
      EXPECT_GT(held.deleted_open_bytes, 100'000u);
      EXPECT_TRUE(world.agent->stats().lost_bytes.empty());
      world.expect_lines(next);
    }
  }
}

TEST(Agent, DirectoryMeansItsTextFiles) {
  World world;
  ASSERT_TRUE(world.files.make_directories("/log/nginx"));
  ASSERT_TRUE(world.files.make_directories("/log/weir"));
  world.settings.paths = {"/log"};
  world.settings.own_directories = {"/log/weir"};
  world.append("/log/app.log", "text\n");
  world.append("/log/nginx/access.log", "deep\n");
  world.append("/log/old.log.2.gz", "compressed\n");
  world.append("/log/wtmp", std::string("\x07\0\0\0binary\n", 12));
  world.append("/log/weir/own.log", "own\n");
  world.append("/log/empty.log", "");
  world.start();
  world.run(1s);
  EXPECT_EQ(world.agent->stats().files, 2u);
  world.append("/log/empty.log", "no more\n");
  world.run(2s);
  const auto all = world.messages();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()), (std::set<std::string>{"deep", "no more", "text"}));
}

TEST(Agent, FileOfManyNamesIsReadOnce) {
  World world;
  runtime::TempDirectory dir;
  auto& disk = runtime::posix_file_system();
  const auto file = dir.path() / "app.log";
  ASSERT_TRUE((*disk.open(file, runtime::OpenMode::kCreate))->append(as_bytes("line 0\nline 1\n")));
  std::filesystem::create_hard_link(file, dir.path() / "hard.log");
  std::filesystem::create_symlink(file, dir.path() / "soft.log");
  std::filesystem::create_directory_symlink(dir.path(), dir.path() / "loop");
  for (const bool once : {true, false}) {
    world.core = world.broker.producer(world.producer_settings);
    auto opened = Agent::open({.paths = {file, dir.path() / "soft.log", file, dir.path(), dir.path() / "hard.log"},
                               .once = once,
                               .host_name = "host",
                               .state_directory = dir.path() / "state",
                               .own_directories = {dir.path() / "state"}},
                              std::make_unique<Producer>(world.core, false), disk, world.clock);
    ASSERT_TRUE(opened) << opened.error().message;
    world.agent = std::move(*opened);
    world.run(3s, 100ms);
    world.expect_lines(2);
    EXPECT_EQ(world.agent->ended(), once);
    world.agent.reset();
  }
}

TEST(Agent, PipeAsInputIsRefusedAndNotWaitedFor) {
  World world;
  runtime::TempDirectory dir;
  const auto pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  world.core = world.broker.producer(world.producer_settings);
  const auto opened = Agent::open({.paths = {pipe}}, std::make_unique<Producer>(world.core, false),
                                  runtime::posix_file_system(), world.clock);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            pipe.string() + " is neither a file nor a directory; to read a pipe, say --input - < " + pipe.string());
}

TEST(Agent, HeldWatchesFilesAndReadsNothing) {
  World world;
  world.lines("/log/app.log", 0, 10);
  world.start();
  world.agent->hold();
  world.run(2s);
  ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.1"));
  world.lines("/log/app.log", 10, 20);
  world.run(2s);
  EXPECT_EQ(world.agent->stats().read, 0u);
  EXPECT_TRUE(world.agent->stats().stuck);
  ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.2"));
  world.lines("/log/app.log", 20, 30);
  world.run(2s);
  world.agent->release();
  world.run(2s);
  world.expect_lines(30);
  EXPECT_FALSE(world.agent->stats().stuck);
}

TEST(Agent, OnceReadsWhatIsThereAndEnds) {
  World world;
  world.settings.once = true;
  EXPECT_FALSE(Agent::open(world.settings,
                           std::make_unique<Producer>(world.broker.producer(world.producer_settings), false),
                           world.files, world.clock));
  world.append("/log/app.log", "a\nb\nlast");
  world.start();
  EXPECT_FALSE(world.agent->ended());
  world.run(500ms);
  EXPECT_TRUE(world.agent->ended());
  EXPECT_EQ(world.messages().size(), 3u);
  EXPECT_EQ(world.agent->stop(0s), 0u);
  world.agent.reset();
  world.start();  // and a second time: nothing is left
  world.run(500ms);
  EXPECT_TRUE(world.agent->ended());
  EXPECT_EQ(world.messages().size(), 3u);
}

TEST(Agent, GeneratorKeepsItsScheduleOrSaysHowFarItIsBehind) {
  World world;
  world.settings.paths.clear();
  world.settings.generate_per_second = 1000;
  world.producer_settings.buffer_memory = kMiB;
  world.start();
  world.run(2s);
  auto stats = world.agent->stats();
  EXPECT_NEAR(double(stats.offered), 2000, 2);
  EXPECT_LE(stats.behind, 2u);
  world.broker.answering = false;
  world.run(5s);
  stats = world.agent->stats();
  EXPECT_NEAR(double(stats.offered), 7000, 2);
  EXPECT_GT(stats.behind, 2000u);
  EXPECT_EQ(stats.offered, stats.read + stats.behind);
  world.agent->stop_inputs();
  world.broker.answering = true;
  world.run(5s);
  EXPECT_EQ(world.agent->stats().offered, stats.offered);
  EXPECT_EQ(world.agent->stats().in_memory, 0u);
  EXPECT_EQ(world.records().size(), world.agent->stats().read);
}

TEST(Agent, StandardInputEndsAtItsEndAndItsLastLineNeedsNoLineEnd) {
  World world;
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  world.settings.paths.clear();
  world.settings.standard_input = true;
  world.settings.input_descriptor = pipe_ends[0];
  world.start();
  world.run(50ms);
  ASSERT_EQ(::write(pipe_ends[1], "one\ntw", 6), 6);
  world.run(50ms);
  EXPECT_EQ(world.messages(), std::vector<std::string>{"one"});
  EXPECT_FALSE(world.agent->ended());
  ASSERT_EQ(::write(pipe_ends[1], "o\nlast", 6), 6);
  ::close(pipe_ends[1]);
  world.run(50ms);
  EXPECT_TRUE(world.agent->ended());
  const auto all = world.messages();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()), (std::set<std::string>{"last", "one", "two"}));
  ::close(pipe_ends[0]);
}

TEST(Agent, ReadsSendsAndEndsWithItsThreads) {
  client::MemoryBroker broker(system_clock());
  broker.create_topic("logs", 2);
  broker.create_topic("logs_error", 2);
  runtime::MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("/log"));
  auto file = files.open("/log/app.log", runtime::OpenMode::kCreate).value();
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(file->append(as_bytes("line ERROR " + std::to_string(i) + "\n")));
  auto agent = Agent::open({.paths = {"/log"}, .once = true, .state_directory = "/state"},
                           std::make_unique<Producer>(broker.producer({.linger = 1ms}), true), files, system_clock())
                   .value();
  Registry registry;
  agent->expose(registry);
  agent->start();
  for (int i = 0; i < 4000 && !agent->ended(); ++i) {
    EXPECT_FALSE(registry.text().empty());
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(agent->ended());
  EXPECT_EQ(agent->stop(5s), 0u);
  EXPECT_EQ(agent->stats().acked, 3000u);
  EXPECT_FALSE(agent->stats().tally().check());
  EXPECT_EQ(broker.values("logs_error").size(), 3000u);
}

TEST(Generator, HasTheSharesItPromises) {
  std::map<std::string_view, int> levels;
  std::set<std::string> servers;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto entry = Generator::entry(i);
    ++levels[entry.level];
    servers.insert(entry.server_id);
  }
  EXPECT_EQ(levels["INFO"], 9000);
  EXPECT_EQ(levels["WARN"], 800);
  EXPECT_EQ(levels["ERROR"], 200);
  EXPECT_EQ(servers.size(), 64u);
  EXPECT_EQ(Generator(1000, MonoTime{}).due(MonoTime{} + 999ms), 1000u);
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

TEST(Agent, FileThatHadTheNameBetweenTwoKillsIsFoundAlsoWhenTheOneBeforeWasRenamedToo) {
  World world;
  world.lines("/log/app.log", 0, 10);
  world.start();
  ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.1"));
  world.kill();
  world.start();  // the checkpoint now names app.log.1
  world.lines("/log/app.log", 10, 20);
  ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.2"));
  world.kill();
  world.start();
  world.run(1s);
  world.expect_lines(20);
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

}  // namespace
}  // namespace weir::agent
