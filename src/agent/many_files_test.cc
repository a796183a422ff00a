// More files than may be open: all of them are read, in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/agent_world.h"
#include "agent/checkpoint.h"

namespace weir::agent {
namespace {

constexpr std::size_t kMost = 3;
constexpr int kFiles = 10;

std::string name_of(int file) { return "/log/" + std::to_string(file) + ".log"; }

/// A directory of ten files, of which three may be open.
struct CrowdedWorld : World {
  CrowdedWorld() {
    settings.paths = {"/log"};
    settings.most_files = kMost;
  }
  /// One more line in each file.
  void line_each() {
    for (int file = 0; file < kFiles; ++file, ++next) lines(name_of(file), next, next + 1);
  }
  std::size_t followed() const { return agent->stats().files; }
  int next = 0;
};

TEST(ManyFiles, AllAreReadAlsoWhatComesLater) {
  CrowdedWorld world;
  world.line_each();
  world.start();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(world.followed(), kMost);
    world.run(10s);
    world.expect_lines(world.next);
    EXPECT_EQ(world.agent->stats().unread_bytes, 0u);
    world.line_each();
  }
  EXPECT_LE(world.files.open_files(), kMost);
}

TEST(ManyFiles, NoneStarvesWhileAllGrow) {
  CrowdedWorld world;
  world.settings.key = KeyBy::kSource;
  world.producer_settings.messages_per_second = 100;  // they never get to an end of what is there
  for (int file = 0; file < kFiles; ++file) world.lines(name_of(file), 0, 20'000);
  world.start();
  world.run(60s, 50ms);
  std::map<std::string, int> taken;
  for (const auto& record : world.records()) ++taken[header(record, "weir.source")];
  EXPECT_EQ(taken.size(), std::size_t(kFiles));
  // Those that wait for a turn are known to be unread too.
  EXPECT_GT(world.agent->stats().unread_bytes, 1'500'000u);
}

TEST(ManyFiles, OnceReadsAllBeforeItEnds) {
  CrowdedWorld world;
  world.settings.once = true;
  world.line_each();
  world.append(name_of(0), "not ended");
  world.start();
  for (int i = 0; i < 60 && !world.agent->ended(); ++i) {
    world.run(1s, 100ms);
    world.append(name_of(0), "and more, for ever\n");
  }
  EXPECT_TRUE(world.agent->ended());
  const auto all = world.messages();
  EXPECT_EQ(std::count(all.begin(), all.end(), "not ended"), 1);
  for (int i = 0; i < kFiles; ++i) EXPECT_EQ(std::count(all.begin(), all.end(), "line " + std::to_string(i)), 1) << i;
}

TEST(ManyFiles, UnfinishedLineKeepsItsTimeAndALongOneItsPlace) {
  CrowdedWorld world;
  world.line_each();
  world.append(name_of(0), "tail");
  for (int file = 1; file < kFiles; ++file) world.append(name_of(file), std::string(200 * kKiB, 'x'));
  world.start();
  world.run(15s);
  const auto all = world.messages();
  EXPECT_EQ(std::count(all.begin(), all.end(), "tail"), 1);
  EXPECT_EQ(world.agent->stats().unterminated, 1u);
  EXPECT_EQ(world.agent->stats().long_lines, std::uint64_t(kFiles - 1));
  EXPECT_EQ(all.size(), std::size_t(2 * kFiles));
  for (int file = 1; file < kFiles; ++file) world.append(name_of(file), "still the long one\nnew\n");
  world.run(15s);
  const auto later = world.messages();
  EXPECT_EQ(later.size(), std::size_t(3 * kFiles - 1));
  EXPECT_EQ(std::count(later.begin(), later.end(), "new"), kFiles - 1);
  EXPECT_EQ(world.agent->stats().long_lines, std::uint64_t(kFiles - 1));
}

TEST(ManyFiles, RotatedOrCutWhileTheyWait) {
  CrowdedWorld world;
  // Named one by one: what is renamed is found beside its old name only.
  world.settings.paths.clear();
  for (int file = 0; file < kFiles; ++file) world.settings.paths.push_back(name_of(file));
  world.line_each();
  world.start();
  world.run(10s, 100ms);
  world.expect_lines(kFiles);
  for (int file = 0; file < kFiles; ++file) {
    world.lines(name_of(file), world.next, world.next + 1);
    ASSERT_TRUE(world.files.rename(name_of(file), name_of(file) + ".1"));
    world.lines(name_of(file), world.next + 1, world.next + 2);
    world.next += 2;
  }
  world.run(60s, 100ms);
  world.expect_lines(world.next);
  for (int file = 0; file < kFiles; ++file) world.rewrite(name_of(file), "cut\n");
  world.run(20s, 100ms);
  EXPECT_EQ(world.messages().size(), std::size_t(world.next + kFiles));
  EXPECT_EQ(world.agent->stats().truncations, std::uint64_t(kFiles));
}

TEST(ManyFiles, DeletedBeforeTheirTurnAreCounted) {
  CrowdedWorld world;
  world.line_each();
  world.start();
  world.run(10s, 100ms);
  world.expect_lines(kFiles);
  world.line_each();
  world.agent->hold();
  world.run(2s, 100ms);
  for (int file = 0; file < kFiles; ++file) ASSERT_TRUE(world.files.remove(name_of(file)));
  world.agent->release();
  world.run(10s, 100ms);
  world.run(70min, 20s);
  // Those that were open are read all the same.
  EXPECT_EQ(world.messages().size(), std::size_t(kFiles) + kMost);
  EXPECT_EQ(world.agent->stats().lost_bytes["given_up"], (kFiles - kMost) * std::string("line 10\n").size());
  EXPECT_EQ(world.agent->stats().unread_bytes, 0u);
}

TEST(ManyFiles, PositionsOfThoseThatWaitAreKept) {
  CrowdedWorld world;
  world.line_each();
  world.start();
  world.run(10s);
  EXPECT_EQ(load_checkpoint(world.files, "/state/checkpoint.json").value().size(), std::size_t(kFiles));
  world.kill();
  world.line_each();
  world.start();
  world.run(10s);
  world.expect_lines(world.next);
}

}  // namespace
}  // namespace weir::agent
