#include "weir/consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <set>

#include "client/consumer_world.h"

namespace weir {
namespace {

using namespace testing_consumer;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ConsumerTest, TheStoresPositionIsToldToTheGroupWhenTheCommitWasLost) {
  World w(1, 10);
  w.broker.set_committed("g", kP0, Offset(4));
  ConsumerHooks hooks;
  std::optional<Offset> kept = Offset(10);  // stored, and killed before the commit
  hooks.on_assign = [&](const AssignedPartition&) { return kept; };
  {
    Member m(w.broker, of_group(), hooks);
    w.run({&m}, 100ms);
    EXPECT_EQ(w.broker.committed("g", kP0), Offset(10));
    EXPECT_EQ(m.consumer.stats().partitions.at(kP0).lag, 0);
  }
  kept = Offset(7);  // an older store: its work is done again, and the group is told when that is done
  Member again(w.broker, of_group(), hooks);
  w.run({&again}, 100ms);
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(10));
  EXPECT_THAT(offsets(again.poll_all()), ElementsAre(7, 8, 9));
}

TEST(ConsumerTest, ALateCommitDoesNotMoveTheGroupBack) {
  World w(1, 10);
  w.broker.set_committed("g", kP0, Offset(6));
  Member m(w.broker, of_group());
  w.run({&m});
  EXPECT_TRUE(m.consumer.commit(kP0, Offset(3)).has_value());  // of the time before the partition left and came back
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(6));
  EXPECT_TRUE(m.consumer.commit(kP0, Offset(7)).has_value());
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(7));
}

TEST(ConsumerTest, RecordsReadWhileTheAssignmentChangesAreNotLost) {
  World w(1, 10);
  auto settings = of_group();
  settings.max_poll_records = 3;
  Member m(w.broker, settings);
  w.run({&m});
  std::future<void> changed;
  w.broker.on_read = [&] {
    w.broker.drop_members("g");
    changed = std::async(std::launch::async, [&] { w.run({&m}); });
    changed.wait_for(50ms);  // the change waits for the read, or is through before it
  };
  const auto first = m.poll();
  changed.wait();
  const auto rest = m.poll_all();
  EXPECT_THAT(offsets(rest), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  m.finish(first);
  EXPECT_EQ(m.consumer.stats().fenced, first.size());
}

TEST(ConsumerTest, NoHookBeginsAfterCloseReturned) {
  World w(1, 3);
  int called = 0;
  ConsumerHooks hooks;
  hooks.on_assign = [&](const AssignedPartition&) -> std::optional<Offset> { return ++called, std::nullopt; };
  hooks.on_revoke = [&](const std::vector<TopicPartition>&, bool) { ++called; };
  hooks.on_gap = [&](const Gap&) { ++called; };
  Member m(w.broker, of_group(), hooks);
  w.run({&m});
  EXPECT_EQ(std::exchange(called, 0), 1);
  w.broker.trim(kP0, Offset(3));
  m.core->request_close(0s);
  m.core->end_hooks();
  w.broker.drop_members("g");
  w.run({&m}, 100ms);
  EXPECT_EQ(called, 0);
}

TEST(ConsumerTest, WhatIsInMemoryIsHandedOutBeforeAGapIsTold) {
  World w(1, 300);
  auto settings = of_group();
  settings.high_watermark = 50;
  settings.low_watermark = 10;
  std::vector<Gap> gaps;
  ConsumerHooks hooks;
  hooks.on_gap = [&](const Gap& gap) { gaps.push_back(gap); };
  Member m(w.broker, settings, hooks);
  w.run({&m});
  auto first = m.poll_all();
  ASSERT_EQ(first.size(), 50u);
  w.fill(kP0, 500);
  w.broker.trim(kP0, Offset(600));  // while held
  w.run({&m}, 1s);
  EXPECT_THAT(gaps, IsEmpty());
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    for (const auto& record : first) seen.insert(record.offset.value);
    m.finish(first);
    w.run({&m}, 10ms);
    first = m.poll();
  }
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].to, Offset(600));
  EXPECT_EQ(std::int64_t(seen.size()), 800 - (gaps[0].to - gaps[0].from));  // each is handed out, or told as gone
  EXPECT_GE(gaps[0].from, Offset(100));
}

TEST(ConsumerTest, AHoldDoesNotSurviveARebalanceButTheOtherPartitionKeepsIts) {
  World w(2, 20);
  Member a(w.broker, of_group());
  w.run({&a});
  const auto first = a.poll_all();
  EXPECT_EQ(first.size(), 40u);
  a.finish(first);
  a.consumer.hold(kP0);
  a.consumer.hold(kP1);
  {
    Member b(w.broker, of_group());
    w.run({&a, &b}, 100ms);
    ASSERT_EQ(a.consumer.assignment().size(), 1u);
    ASSERT_EQ(b.consumer.assignment().size(), 1u);
    b.consumer.close(1s);
    w.run({&a, &b}, 100ms);
  }
  w.run({&a}, 100ms);
  ASSERT_EQ(a.consumer.assignment().size(), 2u);
  w.fill(kP0, 5);
  w.fill(kP1, 5);
  const auto stats = a.consumer.stats();
  const bool p0_kept = stats.partitions.at(kP0).held;
  EXPECT_NE(p0_kept, stats.partitions.at(kP1).held);  // the one that never left is still held
  const auto after = a.poll_all();
  EXPECT_EQ(after.size(), 5u);
  for (const auto& record : after) EXPECT_EQ(record.partition, p0_kept ? kP1 : kP0);
  for (const auto& partition : {kP0, kP1}) a.consumer.release(partition);
  a.poll_all();
  a.consumer.hold(kP1);  // a second hold works
  w.fill(kP1, 1);
  EXPECT_THAT(a.poll(), IsEmpty());
}

TEST(ConsumerTest, ARebalanceKeepsFinishedWorkAndFencesTheRest) {
  World w(2, 50);
  std::vector<std::string> order;
  Member* self = nullptr;
  ConsumerHooks hooks;
  hooks.on_revoke = [&](const std::vector<TopicPartition>& partitions, bool lost) {
    order.push_back(fmt::format("revoke {} lost={} committed={}", partitions.size(), lost,
                                w.broker.committed("g", partitions[0]).value_or(kNoOffset).value));
    self->consumer.commit_finished();
  };
  Member a(w.broker, of_group(), hooks);
  self = &a;
  w.run({&a});
  auto records = a.poll_all();
  ASSERT_EQ(records.size(), 100u);
  Member b(w.broker, of_group());
  w.run({&a, &b}, 100ms);
  ASSERT_THAT(order, IsEmpty());  // draining first
  EXPECT_THAT(b.consumer.assignment(), IsEmpty());
  const TopicPartition moved = a.consumer.stats().partitions.at(kP0).held ? kP0 : kP1;
  const TopicPartition kept = moved == kP0 ? kP1 : kP0;
  std::vector<ConsumedRecord> late;
  for (const auto& record : records) {
    if (record.partition != moved) continue;
    if (record.offset < Offset(40))
      a.consumer.finish(record);
    else
      late.push_back(record);
  }
  w.run({&a, &b}, 6s, 100ms);  // past the drain budget of 5 s
  EXPECT_THAT(order, ElementsAre("revoke 1 lost=false committed=-1"));
  EXPECT_EQ(w.broker.committed("g", moved), Offset(40));
  EXPECT_THAT(a.consumer.assignment(), ElementsAre(kept));
  const auto finished = a.consumer.stats().finished;
  a.finish(late);
  EXPECT_EQ(a.consumer.stats().finished, finished);
  EXPECT_EQ(a.consumer.stats().fenced, 10u);
  EXPECT_EQ(a.consumer.commit(moved, Offset(50)).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(a.consumer.stats().partitions.at(kept).unfinished, 50u);  // untouched
  const auto redone = b.poll_all();
  EXPECT_EQ(redone.size(), 10u);
  EXPECT_EQ(redone.front().offset, Offset(40));
}

TEST(ConsumerTest, AnExpiredOffsetIsAGapThatIsTold) {
  World w(1, 20);
  w.broker.trim(kP0, Offset(12));
  w.broker.set_committed("g", kP0, Offset(3));
  std::vector<Gap> gaps;
  ConsumerHooks hooks;
  hooks.on_gap = [&](const Gap& gap) { gaps.push_back(gap); };
  Member m(w.broker, of_group(), hooks);
  w.run({&m});
  EXPECT_EQ(m.poll_all().front().offset, Offset(12));
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].from, Offset(3));
  EXPECT_EQ(gaps[0].to, Offset(12));
  EXPECT_EQ(m.consumer.stats().skipped, 9u);

  w.broker.trim(kP0, Offset(40));  // while running
  w.run({&m}, 100ms);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[1].from, Offset(20));
  EXPECT_EQ(gaps[1].to, Offset(40));
  w.fill(kP0, 1);
  EXPECT_THAT(offsets(m.poll_all()), ElementsAre(40));

  auto strict = of_group("strict");
  strict.gap = GapPolicy::kError;
  w.broker.set_committed("strict", kP0, Offset(3));
  Member stops(w.broker, strict);
  w.run({&stops});
  const auto failed = stops.consumer.poll(0s);
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, testing::HasSubstr("3 to 39"));
}

TEST(ConsumerTest, APartitionWithoutALeaderDoesNotHoldUpTheOthers) {
  World w(2, 5);
  w.broker.set_committed("g", kP1, Offset(2));
  w.broker.leaderless = {kP1};
  std::vector<TopicPartition> begun;
  ConsumerHooks hooks;
  hooks.on_assign = [&](const AssignedPartition& one) {
    return begun.push_back(one.partition), std::optional<Offset>{};
  };
  Member m(w.broker, of_group(), hooks);
  w.run({&m}, 2s);
  EXPECT_TRUE(m.consumer.assigned());
  EXPECT_THAT(m.consumer.assignment(), ElementsAre(kP0));
  EXPECT_THAT(offsets(m.poll_all()), ElementsAre(0, 1, 2, 3, 4));
  w.broker.leaderless.clear();
  w.run({&m}, 1s);
  EXPECT_THAT(offsets(m.poll_all()), ElementsAre(2, 3, 4));
  EXPECT_THAT(begun, ElementsAre(kP0, kP1));
  EXPECT_EQ(m.consumer.stats().rebalances, 1u);
}

TEST(ConsumerTest, APartitionWithoutALeaderCanBeGivenUp) {
  World w(2, 5);
  w.broker.leaderless = {kP0, kP1};
  Member a(w.broker, of_group());
  w.run({&a}, 1s);
  EXPECT_TRUE(a.consumer.assigned());  // the group does not wait for leaders
  EXPECT_THAT(a.consumer.assignment(), IsEmpty());
  Member b(w.broker, of_group());
  w.run({&a, &b}, 1s);
  w.broker.leaderless.clear();
  w.run({&a, &b}, 1s);
  EXPECT_EQ(a.poll_all().size(), 5u);
  EXPECT_EQ(b.poll_all().size(), 5u);
  w.broker.leaderless = {kP0, kP1};
  w.broker.drop_members("g");
  w.run({&a, &b}, 1s);
  a.consumer.close(1s);
  w.run({&a, &b}, 100ms);
  EXPECT_TRUE(a.core->ended_well());
  w.broker.leaderless.clear();
  w.run({&b}, 1s);
  EXPECT_EQ(b.poll_all().size(), 10u);
}

TEST(ConsumerTest, WithoutACommitTheResetPolicyDecides) {
  World w(1, 5);
  auto latest = of_group("latest");
  latest.auto_offset_reset = OffsetReset::kLatest;
  auto error = of_group("error");
  error.auto_offset_reset = OffsetReset::kError;
  Member a(w.broker, of_group("earliest"));
  Member b(w.broker, latest);
  Member c(w.broker, error);
  w.run({&a, &b, &c});
  EXPECT_EQ(a.poll_all().size(), 5u);
  EXPECT_THAT(b.poll_all(), IsEmpty());
  w.fill(kP0, 1);
  EXPECT_THAT(offsets(b.poll_all()), ElementsAre(5));
  EXPECT_FALSE(c.consumer.poll(0s).has_value());
}

TEST(ConsumerTest, StartsWhereTheStoreSays) {
  World w(1, 10);
  w.broker.set_committed("g", kP0, Offset(2));
  std::optional<AssignedPartition> told;
  ConsumerHooks hooks;
  hooks.on_assign = [&](const AssignedPartition& partition) -> Result<std::optional<Offset>> {
    told = partition;
    return std::optional(Offset(7));
  };
  Member m(w.broker, of_group(), hooks);
  w.run({&m});
  EXPECT_THAT(offsets(m.poll_all()), ElementsAre(7, 8, 9));
  EXPECT_EQ(told->committed, Offset(2));
  EXPECT_EQ(told->log_end, Offset(10));

  hooks.on_assign = [&](const AssignedPartition&) -> Result<std::optional<Offset>> {
    return fail(ErrorKind::kInvalid, "another cluster");
  };
  Member refuses(w.broker, of_group("other"), hooks);
  w.run({&refuses});
  EXPECT_EQ(refuses.consumer.poll(0s).error().message, "another cluster");
}

TEST(ConsumerTest, ACommitThatFailsIsSentAgainAndALaterOneWins) {
  World w(1, 10);
  Member m(w.broker, of_group());
  w.run({&m});
  m.poll_all();
  w.broker.commits_fail = true;
  EXPECT_TRUE(m.consumer.commit(kP0, Offset(4)).has_value());
  w.run({&m}, 100ms);
  EXPECT_FALSE(m.consumer.flush_commits(0s).has_value());
  EXPECT_TRUE(m.consumer.commit(kP0, Offset(6)).has_value());
  w.broker.commits_fail = false;
  w.run({&m}, 1s);
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(6));
  EXPECT_GE(m.consumer.stats().commits_failed, 1u);
  EXPECT_LE(m.consumer.stats().commits_failed, 3u);  // not in a tight loop
  EXPECT_EQ(m.consumer.stats().partitions.at(kP0).unfinished, 4u);
}

TEST(ConsumerTest, LostPartitionsAreFencedWithoutACommit) {
  World w(1, 10);
  bool lost_told = false;
  ConsumerHooks hooks;
  hooks.on_revoke = [&](const std::vector<TopicPartition>&, bool lost) { lost_told |= lost; };
  Member m(w.broker, of_group(), hooks);
  w.run({&m});
  const auto batch = m.poll_all();
  m.finish(batch);
  w.broker.drop_members("g");
  w.run({&m}, 100ms);
  EXPECT_TRUE(lost_told);
  EXPECT_EQ(w.broker.committed("g", kP0), std::nullopt);
  m.finish(batch);
  EXPECT_EQ(m.consumer.stats().fenced, 10u);
  EXPECT_EQ(m.poll_all().size(), 10u);  // assigned anew
  EXPECT_EQ(m.consumer.stats().handed_out_bytes > 0, true);
}

TEST(ConsumerTest, CloseCommitsOnceLeavesAndReturns) {
  World w(1, 10);
  Member m(w.broker, of_group());
  w.run({&m});
  const auto batch = m.poll_all();
  m.finish({batch.begin(), batch.begin() + 5});
  m.consumer.hold(kP0);
  m.consumer.close(5s);
  w.run({&m}, 50ms);
  EXPECT_TRUE(m.core->finished());
  EXPECT_TRUE(m.core->ended_well());
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(5));
  EXPECT_EQ(w.broker.members("g"), 0u);
  EXPECT_EQ(m.consumer.poll(1s).error().kind, ErrorKind::kClosed);
}

TEST(ConsumerTest, CloseReturnsInTimeWhateverIsBroken) {
  for (const std::string fault : {"down", "silent", "commits", "leaving"}) {
    World w(2, 18'000);
    Member m(w.broker, of_group());
    w.run({&m});
    m.finish(m.poll());
    if (fault == "down") w.broker.up = false;
    if (fault == "silent") w.broker.answering = false;
    if (fault == "commits") w.broker.commits_fail = true;
    if (fault == "leaving") w.broker.leaving_hangs = true;
    m.consumer.close(2s);
    w.run({&m}, 2100ms, 100ms);
    EXPECT_TRUE(m.core->finished()) << fault;
    EXPECT_FALSE(m.core->ended_well()) << fault;
  }
}

TEST(ConsumerTest, CloseReturnsWithAStuckHookAndFromInsideOne) {
  // Never destroyed: the thread of the stuck hook is let go and ends some time after this test.
  static MemoryBroker& broker = *new MemoryBroker(system_clock());
  broker.create_topic("t", 1);
  std::promise<void> release;
  auto entered = std::make_shared<std::promise<void>>();
  ConsumerHooks stuck;
  stuck.on_assign = [entered,
                     wait = release.get_future().share()](const AssignedPartition&) -> Result<std::optional<Offset>> {
    entered->set_value();
    wait.wait();
    return std::optional<Offset>{};
  };
  const auto began = std::chrono::steady_clock::now();
  {
    Consumer consumer(broker.consumer(of_group(), stuck), true);
    entered->get_future().wait();
    EXPECT_FALSE(consumer.close(100ms));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  release.set_value();

  Consumer* self = nullptr;
  std::promise<void> ready;
  std::promise<void> closed;
  ConsumerHooks inside;
  inside.on_assign = [&, go = ready.get_future().share()](const AssignedPartition&) -> Result<std::optional<Offset>> {
    go.wait();
    self->close(10s);
    closed.set_value();
    return std::optional<Offset>{};
  };
  Consumer consumer(broker.consumer(of_group("inside"), inside), true);
  self = &consumer;
  ready.set_value();
  EXPECT_EQ(closed.get_future().wait_for(5s), std::future_status::ready);
}

// Made anew while it runs: what a reset means holds for the new log from its start.
TEST(ConsumerTest, ALogMadeAnewIsReadFromItsStart) {
  World w(1, 20);
  Member m(w.broker, of_group());
  w.run({&m});
  const auto old = m.poll_all();
  m.finish({old.begin(), old.begin() + 10});
  w.broker.delete_topic("t");
  w.broker.create_topic("t", 1);
  w.fill(kP0, 5);
  w.run({&m}, 100ms);
  const auto anew = m.poll_all();
  EXPECT_THAT(offsets(anew), ElementsAre(0, 1, 2, 3, 4));
  m.finish(old);  // of another log: fenced
  EXPECT_EQ(m.consumer.stats().fenced, 20u);
  m.finish(anew);
  m.consumer.commit_finished();
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(5));
}

TEST(ConsumerTest, AChildOfForkIsToldAtOnce) {
  MemoryBroker broker(system_clock());
  broker.create_topic("t", 1);
  auto consumer = std::make_unique<Consumer>(broker.consumer(of_group()), true);
  const pid_t child = fork();
  if (child == 0) {
    const bool told = !consumer->poll(10s).has_value() && !consumer->close(10s);
    consumer.reset();
    _exit(told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(consumer->close(5s));
}

}  // namespace
}  // namespace weir
