// Which files are read: rotated, truncated, deleted, renamed, of many names, on a reused inode.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "agent/agent_world.h"
#include "agent/checkpoint.h"
#include "runtime/temp_directory.h"

namespace weir::agent {
namespace {

TEST(Agent, DirectoryMeansItsTextFiles) {
  World world;
  ASSERT_TRUE(world.files.make_directories("/log/nginx"));
  ASSERT_TRUE(world.files.make_directories("/log/weir"));
  world.settings.paths = {"/log"};
  world.settings.own_paths = {"/log/weir"};
  world.append("/log/app.log", "text\n");
  world.append("/log/nginx/access.log", "deep\n");
  world.append("/log/old.log.2.gz", "compressed\n");
  world.append("/log/wtmp", std::string("\x07\0\0\0binary\n", 11));
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
                               .own_paths = {dir.path() / "state"}},
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
  EXPECT_EQ(world.agent->stats().stuck, "no broker answered");
  ASSERT_TRUE(world.files.rename("/log/app.log", "/log/app.log.2"));
  world.lines("/log/app.log", 20, 30);
  world.run(2s);
  world.agent->release();
  world.run(2s);
  world.expect_lines(30);
  EXPECT_EQ(world.agent->stats().stuck, "");
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

// Other first bytes make another file, also where the same line, over and over, stands at the old position.
TEST(Agent, RewrittenWithOtherFirstBytesWhileItIsFollowedIsReadFromItsStart) {
  World world;
  const auto log = [](const std::string& first, int beats) {
    std::string text = first + "\n";
    for (int i = 0; i < beats; ++i) text += "heartbeat ok, nothing to report here\n";
    return text;
  };
  world.append("/log/app.log", log("started 10:00", 40));
  world.start();
  world.run(1s);
  world.rewrite("/log/app.log", log("started 11:00", 60));
  world.run(1s);
  EXPECT_EQ(world.messages().size(), 102u);
  EXPECT_EQ(world.agent->stats().truncations, 1u);
  EXPECT_TRUE(world.agent->stats().lost_bytes.empty()) << "all of the first was read";
}

TEST(Agent, OverwrittenWithAsManyBytesIsReadFromItsStart) {
  World world;
  world.append("/log/app.log", "AAAA one\nAAAA two\n");
  world.start();
  world.run(1s);
  world.rewrite("/log/app.log", "BBBB one\nBBBB two\n");
  world.run(1s);
  EXPECT_EQ(world.messages().size(), 4u);
  EXPECT_EQ(world.agent->stats().truncations, 1u);
  EXPECT_TRUE(world.agent->stats().lost_bytes.empty());
}

TEST(Agent, WhatItPrintsIntoIsNotRead) {
  World world;
  world.settings.paths = {"/log"};
  world.settings.own_paths = {"/log/weir.log"};
  world.append("/log/weir.log", "ready\n");
  world.append("/log/app.log", "text\n");
  world.start();
  world.run(1s);
  world.append("/log/weir.log", "text was read\n");
  world.run(1s);
  EXPECT_EQ(world.messages(), std::vector<std::string>{"text"});
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

TEST(Agent, WhatWasBinaryIsLookedAtAgainWhenItHasChanged) {
  World world;
  world.settings.paths = {"/log"};
  world.append("/log/zeros.log", std::string(100, '\0'));
  world.start();
  world.run(3s);
  EXPECT_TRUE(world.records().empty());
  world.rewrite("/log/zeros.log", "line 0\nline 1\n");  // the same inode, as a new file may have too
  world.run(3s);
  world.expect_lines(2);
}

TEST(Agent, AFileThatWasFollowedIsNotJudgedAgain) {
  World world;
  world.settings.paths = {"/log"};
  world.append("/log/app.log", "line 0\n");
  world.start();
  world.run(3s);
  // A writer that does not append makes a hole in a file that was truncated under it.
  world.rewrite("/log/app.log", std::string(5000, '\0') + "\nline 1\n");
  world.run(3s);
  EXPECT_EQ(world.records().size(), 3u);
  world.agent->stop(1s);
  world.start();
  world.append("/log/app.log", "line 2\n");
  world.run(3s);
  EXPECT_EQ(world.messages().back(), "line 2");
}

}  // namespace
}  // namespace weir::agent
