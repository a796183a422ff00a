#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/fake_source.h"
#include "guard/lag_monitor.h"
#include "guard/report.h"

namespace weir::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

struct Lag : testing::Test {
  /// One poll, `later` after the one before.
  std::shared_ptr<const LagSnapshot> poll(Duration later = seconds(1)) {
    clock.advance(later);
    const auto sample = take_sample(source, only, watched);
    return sample ? monitor.update(clock.now().mono, clock.now(), *sample)
                  : monitor.update_failed(clock.now().mono, clock.now(), sample.error());
  }
  GroupLag group(Duration later = seconds(1)) { return poll(later)->groups.at("g"); }
  PartitionLag only_partition(Duration later = seconds(1)) { return group(later).partitions.at(0); }

  FakeSource source;
  std::vector<std::string> only;
  std::vector<std::string> watched;
  LagMonitorSettings settings{.earliest_groups = {"earliest"}};
  LagMonitor monitor{settings};
  ManualClock clock;
};

TEST_F(Lag, IsNeverNegativeBecauseCommitsAreReadFirst) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 130);  // The group has overtaken an end read before.
  source.after_commits = [this] { source.log("t", 0, 0, 131); };
  EXPECT_EQ(only_partition().records, 1);
  EXPECT_EQ(poll()->clamped, 0u);
}

TEST_F(Lag, ACommitBeyondTheEndCountsAsZeroAndIsCounted) {
  source.log("t", 0, 0, 50);
  source.commit("g", "t", 0, 70);
  const auto snapshot = poll();
  EXPECT_EQ(snapshot->groups.at("g").records, 0);
  EXPECT_EQ(snapshot->groups.at("g").partitions[0].state, LagState::kBeyondEnd);
  EXPECT_EQ(snapshot->clamped, 1u);
  EXPECT_EQ(poll()->clamped, 2u);
}

TEST_F(Lag, StaysWhenAllMembersAreDead) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 50);
  source.members("g", 1, {{"t", PartitionId(0)}});
  EXPECT_EQ(group().records, 50);
  source.members("g", 0);
  source.log("t", 0, 0, 200);
  const GroupLag lag = group();
  EXPECT_EQ(lag.records, 150);
  EXPECT_EQ(lag.state, "Empty");
  EXPECT_EQ(lag.members, 0u);
  EXPECT_THAT(
      lag_to_metrics(*poll()),
      HasSubstr("kafka_consumer_lag{group=\"g\",topic=\"t\",partition=\"0\",state=\"Empty\",assigned=\"true\"} 150\n"));
  source.all.erase("g");
  EXPECT_THAT(lag_to_metrics(*poll()), Not(HasSubstr("group=\"g\"")));
}

TEST_F(Lag, AMissingCommitIsWhatThePolicySays) {
  source.log("t", 0, 400, 1000);
  source.log("t", 1, 1000, 1000);  // Empty: 0 whatever the policy.
  source.log("t", 2, 0, 10);
  source.commit("g", "t", 2, 7);
  const auto expect = [&](MissingCommit policy, std::optional<std::int64_t> records, std::int64_t sum) {
    settings.missing_commit = policy;
    monitor = LagMonitor(settings);
    const GroupLag lag = group();
    EXPECT_EQ(lag.partitions[0].records, records);
    EXPECT_EQ(lag.partitions[0].state, LagState::kUncommitted);
    EXPECT_EQ(lag.partitions[1].records, 0);
    EXPECT_EQ(lag.records, sum);
    EXPECT_EQ(lag.uncommitted, policy == MissingCommit::kUnknown ? 1u : 0u);
  };
  expect(MissingCommit::kEarliest, 600, 603);
  expect(MissingCommit::kLatest, 0, 3);
  expect(MissingCommit::kUnknown, std::nullopt, 3);
}

TEST_F(Lag, GrowsWithoutCommitsAndSaysStopped) {
  source.log("t", 0, 0, 10);
  source.commit("g", "t", 0, 10);
  EXPECT_EQ(only_partition().state, LagState::kOk);
  source.members("g", 0);
  source.log("t", 0, 0, 510);
  EXPECT_EQ(only_partition().records, 500);
  EXPECT_TRUE(group().stopped());
}

TEST_F(Lag, AMemberThatDoesNotCommitIsStoppedAfterAWhile) {
  source.log("t", 0, 0, 20);
  source.commit("g", "t", 0, 10);
  EXPECT_EQ(only_partition().state, LagState::kOk);
  EXPECT_EQ(only_partition(seconds(29)).state, LagState::kOk);
  EXPECT_EQ(only_partition(seconds(1)).state, LagState::kStopped);
  source.commit("g", "t", 0, 11);
  EXPECT_EQ(only_partition().state, LagState::kOk);
}

TEST_F(Lag, AQuietTopicIsOkHoweverLongItIsQuiet) {
  source.log("t", 0, 0, 10);
  source.commit("g", "t", 0, 10);
  EXPECT_EQ(only_partition().state, LagState::kOk);
  EXPECT_EQ(only_partition(std::chrono::hours(24)).state, LagState::kOk);
  source.log("t", 0, 0, 11);  // One record a day: no alarm on arrival either.
  EXPECT_EQ(only_partition().state, LagState::kOk);
}

TEST_F(Lag, RetentionThatOvertookTheGroupIsTold) {
  source.log("t", 0, 5000, 6000);
  source.commit("g", "t", 0, 100);
  const PartitionLag lag = only_partition();
  EXPECT_EQ(lag.state, LagState::kExpired);
  EXPECT_EQ(lag.records, 1000);
  EXPECT_EQ(lag.lost, 4900);
  EXPECT_THAT(lag_to_metrics(*poll()),
              HasSubstr("weir_consumer_lost_records{group=\"g\",topic=\"t\",partition=\"0\"} 4900\n"));
}

TEST_F(Lag, TopicsNoLongerReadAreLeftOutOfTheSumWhileTheGroupIsStable) {
  source.log("t1", 0, 0, 100);
  source.log("t2", 0, 0, 10);
  source.commit("g", "t1", 0, 40);
  source.commit("g", "t2", 0, 8);
  source.members("g", 1, {{"t2", PartitionId(0)}});
  EXPECT_EQ(group().records, 2);
  EXPECT_THAT(lag_to_metrics(*poll()),
              HasSubstr("topic=\"t1\",partition=\"0\",state=\"Stable\",assigned=\"false\"} 60\n"));
  source.members("g", 0);
  EXPECT_EQ(group().records, 62);
  source.logs.erase({"t1", PartitionId(0)});  // Deleted: its series ends, without an error.
  const auto snapshot = poll();
  EXPECT_TRUE(snapshot->errors.empty());
  EXPECT_THAT(lag_to_metrics(*snapshot), Not(HasSubstr("t1")));
}

TEST_F(Lag, IsZeroWhenTheCommitPassedTheTransactionMarker) {
  source.log("t", 0, 0, 4);  // Three records and their commit marker.
  source.commit("g", "t", 0, 4);
  EXPECT_EQ(only_partition().records, 0);
  EXPECT_EQ(only_partition().time, Duration::zero());
}

TEST_F(Lag, InTimeIsHowLongAgoTheCommitWasTheEnd) {
  source.commit("g", "t", 0, 0);
  for (int second = 0; second <= 10; ++second) {  // 100 records a second, consumed with 3 s of delay.
    source.log("t", 0, 0, second * 100);
    source.commit("g", "t", 0, std::max(0, second * 100 - 300));
    poll();
  }
  const PartitionLag lag = only_partition(Duration::zero());
  EXPECT_EQ(lag.records, 300);
  EXPECT_NEAR(to_seconds(*lag.time), 3.0, 0.01);
  EXPECT_TRUE(lag.time_exact);
}

TEST_F(Lag, InTimeIsNotKnownAtFirstSightThenAtLeastAsLongAsWatched) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 50);
  EXPECT_EQ(only_partition().time, std::nullopt);
  const PartitionLag lag = only_partition(seconds(7));
  EXPECT_EQ(lag.time, seconds(7));
  EXPECT_FALSE(lag.time_exact);
}

TEST_F(Lag, InTimeIsKnownAtFirstSightOfAGroupWhenItsTopicWasWatched) {
  watched = {"t", "not_made_yet"};
  source.log("t", 0, 0, 0);
  source.log("t", 1, 0, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(poll()->groups.empty());
  source.log("t", 0, 0, 100);
  source.log("t", 1, 0, 100);
  source.commit("earliest", "t", 0, 50);
  const GroupLag lag = poll(seconds(2))->groups.at("earliest");
  EXPECT_EQ(lag.partitions.at(0).time, seconds(1));
  EXPECT_EQ(lag.partitions.at(1).state, LagState::kUncommitted);
  EXPECT_EQ(lag.partitions.at(1).records, 100);
  EXPECT_EQ(lag.partitions.at(1).time, seconds(2)) << "it reads from the start";
  EXPECT_EQ(lag.uncommitted, 0u);
  EXPECT_EQ(lag.time, seconds(2));
  EXPECT_EQ(lag.records, 150);

  source.commit("other", "t", 0, 50);
  EXPECT_EQ(poll()->groups.at("other").time, std::nullopt) << "where that reads from is not known";
}

TEST_F(Lag, RatesAreThoseBetweenTwoPolls) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 50);
  EXPECT_FALSE(group().consumed_per_s);
  source.log("t", 0, 0, 300);
  source.commit("g", "t", 0, 90);
  const GroupLag lag = group(seconds(2));
  EXPECT_DOUBLE_EQ(*lag.consumed_per_s, 20);
  EXPECT_DOUBLE_EQ(*lag.produced_per_s, 100);
}

TEST_F(Lag, OneHungCoordinatorMakesItsGroupsStaleAndNoOther) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 90);
  source.commit("other", "t", 0, 40);
  source.all["other"].coordinator = "c2";
  poll();
  source.hung = {"c1"};
  source.log("t", 0, 0, 200);
  const auto snapshot = poll();
  EXPECT_TRUE(snapshot->groups.at("g").stale);
  EXPECT_EQ(snapshot->groups.at("g").records, 10);  // As last measured.
  EXPECT_FALSE(snapshot->groups.at("other").stale);
  EXPECT_EQ(snapshot->groups.at("other").records, 160);
  EXPECT_THAT(lag_to_metrics(*snapshot), HasSubstr("weir_group_stale{group=\"g\"} 1\n"));
  source.hung.clear();
  EXPECT_FALSE(group().stale);
}

TEST_F(Lag, AHungLeaderGivesNoNumberInsteadOfAWrongOne) {
  source.log("t", 0, 0, 100);
  source.log("u", 0, 0, 100);
  source.commit("g", "t", 0, 90);
  source.commit("g", "u", 0, 0);
  source.hung_topics = {"u"};
  const GroupLag lag = group();
  EXPECT_EQ(lag.records, 10);
  EXPECT_EQ(lag.unmeasured, 1u);
  EXPECT_EQ(lag.partitions[1].records, std::nullopt);
}

TEST_F(Lag, AClusterThatIsGoneMakesEverythingStaleAndForgetsNothing) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 90);
  poll();
  source.down = true;
  const auto snapshot = poll();
  EXPECT_FALSE(snapshot->complete);
  EXPECT_TRUE(snapshot->groups.at("g").stale);
  EXPECT_THAT(snapshot->errors.at(0), HasSubstr("refused"));
  EXPECT_EQ(snapshot->taken - *snapshot->last_complete, seconds(1));
  source.down = false;
  EXPECT_FALSE(group().stale);
}

TEST_F(Lag, ManyGroupsAreAskedInOneRequestPerCoordinatorAndRenderedOnce) {
  for (int t = 0; t < 3500; ++t) source.log("topic-" + std::to_string(t), 0, 0, 100);
  for (int g = 0; g < 1500; ++g) {
    const std::string name = "group-" + std::to_string(g);
    for (int t = 0; t < 3; ++t) source.commit(name, "topic-" + std::to_string((g * 3 + t) % 3500), 0, 60);
    source.all[name].coordinator = "c" + std::to_string(g % 3);
  }
  source.hung = {"c0"};
  const auto snapshot = poll();
  EXPECT_EQ(source.coordinator_requests, 3);
  int stale = 0;
  for (const auto& [name, group] : snapshot->groups) stale += group.stale ? 1 : 0;
  EXPECT_EQ(stale, 500);
  EXPECT_EQ(snapshot->groups.at("group-1").records, 120);
}

TEST_F(Lag, NamedGroupsOnly) {
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 90);
  source.commit("h", "t", 0, 90);
  only = {"h", "nobody"};
  const auto snapshot = poll();
  EXPECT_EQ(snapshot->groups.size(), 1u);
  EXPECT_TRUE(snapshot->complete);
}

TEST_F(Lag, OneLookKnowsNoTimeAndDoesNotSayZero) {
  source.log("t", 0, 0, 100);
  source.log("t", 1, 0, 100);
  source.commit("g", "t", 0, 100);  // Caught up: 0 s, at once.
  source.commit("g", "t", 1, 40);   // Behind, since nobody knows when.
  const auto snapshot = poll();
  EXPECT_EQ(snapshot->groups.at("g").partitions[0].time, Duration::zero());
  EXPECT_EQ(snapshot->groups.at("g").time, std::nullopt);
  const std::string json = lag_to_json(*snapshot, clock.now().mono, "g");
  EXPECT_THAT(json, HasSubstr("\"lag\":60,\"lag_seconds\":null,\"members\""));
  EXPECT_THAT(lag_to_table(*snapshot), HasSubstr("lag 60, in time ?\n"));
  EXPECT_NE(group().time, std::nullopt);  // A second look at the ends tells.
}

TEST_F(Lag, LongestKnownTimeIsKeptBesideOneThatIsNotKnown) {
  source.log("t", 0, 0, 100);
  source.log("t", 1, 0, 10);  // no commit
  source.commit("g", "t", 0, 100);
  group();
  source.log("t", 0, 0, 200);
  group();
  const auto late = group(seconds(60));
  EXPECT_EQ(late.time, std::nullopt);
  ASSERT_TRUE(late.known_time);
  EXPECT_GE(*late.known_time, seconds(60));
}

TEST_F(Lag, GroupWithoutAnyCommitHasNoLag) {
  source.log("t", 0, 0, 100);
  source.members("g", 1, {{"t", PartitionId(0)}});
  source.commit("g", "u", 0, 0);  // of a topic that is gone
  const auto snapshot = poll();
  EXPECT_EQ(snapshot->groups.at("g").records, std::nullopt);
  EXPECT_THAT(lag_to_json(*snapshot, clock.now().mono, "g"), HasSubstr("\"lag\":null,\"lag_seconds\":null"));
  EXPECT_THAT(lag_to_metrics(*snapshot), Not(HasSubstr("weir_group_lag_records{")));
}

TEST_F(Lag, ReportsAreOneLineOfJsonAndATable) {
  source.log("t", 0, 0, 100);
  source.log("t", 1, 10, 20);
  source.commit("g", "t", 0, 90);
  const auto snapshot = poll();
  const std::string json = lag_to_json(*snapshot, clock.now().mono, "g");
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_THAT(json, HasSubstr("\"status\":\"uncommitted\""));
  EXPECT_THAT(json, HasSubstr("\"lag\":10"));
  EXPECT_THAT(lag_to_json(*snapshot, clock.now().mono, "nobody"), HasSubstr("\"groups\":[]"));
  EXPECT_THAT(lag_to_table(*snapshot), HasSubstr("lag at least 10"));
  EXPECT_THAT(lag_to_table(*snapshot), HasSubstr("1 partitions without a commit"));
}

}  // namespace
}  // namespace weir::guard
