#include <gtest/gtest.h>

#include "broker/group/harness.h"
#include "protocol/messages/15_describe_groups.h"
#include "protocol/messages/16_list_groups.h"

namespace weir::broker::testing {
namespace {

struct Membership : ::testing::Test, Harness {};

// Two members, Stable; the first leads.
struct Pair : Membership {
  void SetUp() override {
    config.group_initial_rebalance_delay_ms = 1000;
    const auto a_joins = join({.member = new_id()});
    const auto b_joins = join({.member = new_id()});
    EXPECT_TRUE(waiting(a_joins));
    advance(seconds(1));
    advance(seconds(1));
    const auto a_in = joined(a_joins);
    const auto b_in = joined(b_joins);
    EXPECT_EQ(a_in.generation_id, 1);
    EXPECT_EQ(a_in.leader, b_in.leader);
    const auto& led = a_in.leader == a_in.member_id ? a_in : b_in;
    EXPECT_EQ(led.members.size(), 2u);
    EXPECT_EQ(a_in.members.size() + b_in.members.size(), 2u) << "only the leader is told who is in";
    leader = led.member_id;
    other = leader == a_in.member_id ? b_in.member_id : a_in.member_id;
    const auto waits = sync(other, 1);
    EXPECT_TRUE(waiting(waits));
    const auto leads = sync(leader, 1, {{leader, "p0"}, {other, "p1"}});
    EXPECT_EQ(as_text(synced(leads).assignment), "p0");
    EXPECT_EQ(as_text(synced(waits).assignment), "p1");
    EXPECT_EQ(group().state, GroupState::kStable);
  }
  std::string leader, other;
};

TEST_F(Membership, A_client_is_told_its_id_first_and_an_old_one_is_let_in_at_once) {
  const std::string id = new_id();
  EXPECT_EQ(id.rfind("client-", 0), 0u);
  EXPECT_EQ(id.size(), 7u + 36u);
  const auto in = joined(join({.version = 3}));
  EXPECT_EQ(in.error_code, ErrorCode::kNone);
  EXPECT_EQ(in.leader, in.member_id);
  EXPECT_EQ(in.protocol_name, "range");
}

TEST_F(Membership, Faulty_joins_are_refused_and_leave_nothing_behind) {
  EXPECT_EQ(joined(join({}, "")).error_code, ErrorCode::kInvalidGroupId);
  EXPECT_EQ(joined(join({.session = milliseconds(1)})).error_code, ErrorCode::kInvalidSessionTimeout);
  EXPECT_EQ(joined(join({.session = std::chrono::hours(1)})).error_code, ErrorCode::kInvalidSessionTimeout);
  EXPECT_EQ(joined(join({.member = "who"})).error_code, ErrorCode::kUnknownMemberId);
  EXPECT_EQ(joined(join({.protocols = {}})).error_code, ErrorCode::kInconsistentGroupProtocol);
  EXPECT_TRUE(coordinator->groups().empty());
  stable_alone();
  EXPECT_EQ(joined(join({.protocols = {"other"}})).error_code, ErrorCode::kInconsistentGroupProtocol);
}

TEST_F(Membership, An_id_that_is_never_used_is_forgotten) {
  const std::string id = new_id();
  EXPECT_EQ(coordinator->groups().size(), 1u);
  advance(seconds(10));
  EXPECT_TRUE(coordinator->groups().empty());
  EXPECT_EQ(joined(join({.member = id})).error_code, ErrorCode::kUnknownMemberId);
}

TEST_F(Membership, A_told_id_does_not_take_a_static_members_place) {
  const std::string holder = stable_alone({.instance = "a"});
  EXPECT_EQ(joined(join({.member = new_id(), .instance = "a"})).error_code, ErrorCode::kFencedInstanceId);
  EXPECT_EQ(heartbeat(holder, 1, "a"), ErrorCode::kNone);
}

TEST_F(Membership, The_protocol_most_members_prefer_wins_among_those_all_support) {
  config.group_initial_rebalance_delay_ms = 1000;
  join({.version = 3, .protocols = {"only-a", "range", "rr"}});
  join({.version = 3, .protocols = {"rr", "range"}});
  const auto c = join({.version = 3, .protocols = {"rr", "range"}});
  advance(seconds(1));
  advance(seconds(1));
  EXPECT_EQ(joined(c).protocol_name, "rr");
}

TEST_F(Pair, A_heartbeat_keeps_a_member_for_as_long_as_it_comes) {
  // Field: a consumer that pauses for longer than its session, but goes on with heartbeats, stays with its id and
  // generation.
  for (int i = 0; i < 20; ++i) {
    advance(seconds(5));
    EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kNone);
    EXPECT_EQ(heartbeat(other, 1), ErrorCode::kNone);
  }
  EXPECT_EQ(commit_offset({"t", PartitionId(0)}, 5, leader, 1), ErrorCode::kNone);
  EXPECT_EQ(heartbeat("who", 1), ErrorCode::kUnknownMemberId);
  EXPECT_EQ(heartbeat(other, 2), ErrorCode::kIllegalGeneration);
}

TEST_F(Pair, A_member_that_falls_silent_is_out_after_its_session_and_the_others_share) {
  advance(seconds(6));
  EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kNone);
  advance(seconds(5));  // the other's session of 10 s is over
  EXPECT_EQ(heartbeat(other, 1), ErrorCode::kUnknownMemberId);
  EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kRebalanceInProgress);
  const auto again = joined(join({.member = leader}));
  EXPECT_EQ(again.generation_id, 2);
  EXPECT_EQ(again.members.size(), 1u);
}

TEST_F(Pair, A_member_that_leaves_hands_over_at_once_and_the_last_one_leaves_an_empty_group) {
  EXPECT_EQ(leave(leader), ErrorCode::kNone);
  EXPECT_EQ(leave(leader), ErrorCode::kUnknownMemberId);
  const auto again = joined(join({.member = other}));
  EXPECT_EQ(again.leader, other);
  EXPECT_EQ(leave(other), ErrorCode::kNone);
  EXPECT_EQ(group().state, GroupState::kEmpty);
  EXPECT_EQ(group().generation, 3);
  restart();
  EXPECT_EQ(group().state, GroupState::kEmpty);
  EXPECT_EQ(group().generation, 3);
}

TEST_F(Pair, A_new_member_makes_everybody_join_again_and_who_does_not_is_out) {
  const auto third = join({.version = 3});
  EXPECT_TRUE(waiting(third));
  EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kRebalanceInProgress);
  EXPECT_EQ(synced(sync(leader, 1)).error_code, ErrorCode::kRebalanceInProgress);
  const auto back = join({.member = leader});
  EXPECT_TRUE(waiting(back));
  for (int i = 0; i < 12; ++i) {  // the other goes on with heartbeats but does not join
    advance(seconds(5));
    if (i < 11) {
      EXPECT_EQ(heartbeat(other, 1), ErrorCode::kRebalanceInProgress);
    }
  }
  EXPECT_EQ(joined(back).generation_id, 2);
  EXPECT_EQ(joined(third).generation_id, 2);
  EXPECT_EQ(heartbeat(other, 1), ErrorCode::kUnknownMemberId);
}

TEST_F(Pair, A_member_that_never_asks_for_its_assignment_is_out) {
  const auto third = join({.version = 3});
  join({.member = leader});
  join({.member = other});
  const std::string newcomer = joined(third).member_id;
  const auto waits = sync(other, 2);
  for (int i = 0; i < 12; ++i) {
    advance(seconds(5));
    heartbeat(newcomer, 2);
    if (group().state == GroupState::kCompletingRebalance) heartbeat(leader, 2);
  }
  EXPECT_EQ(synced(waits).error_code, ErrorCode::kRebalanceInProgress);
  EXPECT_EQ(group().members().size(), 1u);
  EXPECT_NE(group().member(other), nullptr);
}

TEST_F(Pair, Joining_again_without_a_change_gives_the_generation_there_is_but_the_leader_forces_a_new_one) {
  EXPECT_EQ(joined(join({.member = other})).generation_id, 1);
  EXPECT_EQ(group().state, GroupState::kStable);
  const auto forced = join({.member = leader});
  EXPECT_TRUE(waiting(forced));
  const auto follows = join({.member = other});
  EXPECT_EQ(joined(forced).generation_id, 2);
  EXPECT_EQ(joined(follows).generation_id, 2);
  // Its answer was lost on the way: it asks again.
  EXPECT_EQ(joined(join({.member = other})).generation_id, 2);
}

TEST_F(Pair, Two_joins_of_one_member_are_both_answered) {
  const auto first = join({.member = leader});
  const auto second = join({.member = leader});
  EXPECT_EQ(joined(first).error_code, ErrorCode::kRebalanceInProgress);
  join({.member = other});
  EXPECT_EQ(joined(second).generation_id, 2);
}

TEST_F(Pair, A_change_of_metadata_makes_everybody_join_again) {
  EXPECT_TRUE(waiting(join({.member = other, .topics_metadata = "more topics"})));
  EXPECT_EQ(group().state, GroupState::kPreparingRebalance);
}

TEST_F(Membership, The_first_members_of_a_group_are_waited_for_and_each_newcomer_extends_the_wait) {
  config.group_initial_rebalance_delay_ms = 3000;
  const auto a = join({.version = 3});
  advance(seconds(2));
  const auto b = join({.version = 3});
  advance(seconds(1));  // 3 s: b came meanwhile
  advance(seconds(2));
  EXPECT_TRUE(waiting(a));
  advance(seconds(1));
  EXPECT_EQ(joined(a).generation_id, 1);
  EXPECT_EQ(joined(b).generation_id, 1);
}

TEST_F(Membership, A_full_group_takes_no_more_members) {
  config.group_max_size = 1;
  const std::string first = stable_alone();
  EXPECT_EQ(joined(join({.version = 3})).error_code, ErrorCode::kGroupMaxSizeReached);
  EXPECT_EQ(heartbeat(first, 1), ErrorCode::kNone);
}

TEST_F(Membership, A_restarted_static_member_takes_over_at_once_and_the_old_process_is_fenced) {
  for (const std::int16_t version : {std::int16_t{5}, std::int16_t{9}}) {
    SCOPED_TRACE(version);
    const std::string old_id = stable_alone({.instance = "sink-1", .version = version});
    const auto generation = group().generation;
    const auto back = joined(join({.instance = "sink-1", .version = version}));
    EXPECT_EQ(back.error_code, ErrorCode::kNone);
    EXPECT_EQ(back.generation_id, generation) << "nobody else has to join again";
    EXPECT_NE(back.member_id, old_id);
    EXPECT_EQ(back.skip_assignment, version >= 9);
    EXPECT_EQ(back.leader, version >= 9 ? back.member_id : old_id);
    EXPECT_EQ(as_text(synced(sync(back.member_id, generation, {}, "sink-1")).assignment), "all");
    EXPECT_EQ(heartbeat(old_id, generation, "sink-1"), ErrorCode::kFencedInstanceId);
    EXPECT_EQ(heartbeat(back.member_id, generation, "sink-1"), ErrorCode::kNone);
    restart();
    EXPECT_EQ(heartbeat(back.member_id, generation, "sink-1"), ErrorCode::kNone) << "the new id is stored";
    EXPECT_EQ(leave(back.member_id), ErrorCode::kNone);
  }
}

TEST_F(Membership, A_static_member_that_comes_back_during_a_rebalance_fences_its_waiting_twin) {
  stable_alone({.instance = "a"});
  const auto newcomer = join({.version = 3});
  const auto twin = join({.instance = "a"});
  EXPECT_EQ(joined(newcomer).generation_id, 2);
  const auto in = joined(twin);
  const auto waits = sync(in.member_id, 2, {}, "a");
  const bool leads = in.leader == in.member_id;
  const auto again = join({.instance = "a"});
  if (!leads) {
    EXPECT_EQ(synced(waits).error_code, ErrorCode::kFencedInstanceId);
    EXPECT_TRUE(waiting(again));
    EXPECT_EQ(group().state, GroupState::kPreparingRebalance);
  } else {
    EXPECT_EQ(synced(waits).error_code, ErrorCode::kNone);
    EXPECT_EQ(joined(again).generation_id, 2);
  }
}

TEST_F(Membership, An_administrator_removes_a_static_member_by_its_instance_id) {
  const std::string id = stable_alone({.instance = "a"});
  const Request request =
      make(protocol::LeaveGroupRequest{.group_id = "g", .members = {{"", "a", {}}, {"", "b", {}}, {"x", {}, {}}}}, 5);
  coordinator->leave(clock.now(), request);
  const auto left = take<protocol::LeaveGroupResponse>(request.id);
  EXPECT_EQ(left.members.at(0).error_code, ErrorCode::kNone);
  EXPECT_EQ(left.members.at(1).error_code, ErrorCode::kUnknownMemberId);
  EXPECT_EQ(left.members.at(2).error_code, ErrorCode::kUnknownMemberId);
  EXPECT_TRUE(group().members().empty());
}

TEST_F(Pair, A_restarted_broker_takes_its_members_to_be_there_until_their_sessions_end) {
  restart();
  EXPECT_EQ(group().state, GroupState::kStable);
  EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kNone);
  EXPECT_EQ(as_text(synced(sync(other, 1)).assignment), "p1");
  advance(seconds(9));
  EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kNone);
  advance(seconds(2));
  EXPECT_EQ(heartbeat(leader, 1), ErrorCode::kRebalanceInProgress) << "the other one did not come back";
}

TEST_F(Pair, A_broker_that_cannot_store_the_assignment_makes_the_members_try_again) {
  join({.member = leader});
  join({.member = other});
  const auto waits = sync(other, 2);
  full = true;
  const auto leads = sync(leader, 2, {{leader, "x"}});
  EXPECT_EQ(synced(leads).error_code, ErrorCode::kCoordinatorNotAvailable);
  EXPECT_EQ(synced(waits).error_code, ErrorCode::kCoordinatorNotAvailable);
  EXPECT_EQ(group().state, GroupState::kPreparingRebalance);
  full = false;
  const auto a = join({.member = leader});
  join({.member = other});
  EXPECT_EQ(joined(a).generation_id, 3);
}

TEST_F(Membership, A_static_takeover_that_cannot_be_stored_is_undone) {
  const std::string old_id = stable_alone({.instance = "a"});
  full = true;
  EXPECT_EQ(joined(join({.instance = "a"})).error_code, ErrorCode::kCoordinatorNotAvailable);
  EXPECT_EQ(heartbeat(old_id, 1, "a"), ErrorCode::kNone);
}

TEST_F(Pair, Groups_are_listed_by_state_and_type_and_described_with_members_only_as_far_as_settled) {
  commit_offset({"t", PartitionId(0)}, 1, "", -1, "simple");
  const auto list = [&](std::vector<std::string> states, std::vector<std::string> types) {
    const Request request = make(protocol::ListGroupsRequest{std::move(states), std::move(types)}, 5);
    coordinator->list(request);
    std::string names;
    const auto response = take<protocol::ListGroupsResponse>(request.id);
    for (const auto& g : response.groups) names += g.group_id + " ";
    return names;
  };
  EXPECT_EQ(list({}, {}), "g simple ");
  EXPECT_EQ(list({"stable"}, {}), "g ");
  EXPECT_EQ(list({"Empty", "Dead"}, {"classic"}), "simple ");
  EXPECT_EQ(list({}, {"consumer"}), "");

  const auto describe = [&] {
    const Request request = make(protocol::DescribeGroupsRequest{{"g", "nobody"}, true}, 6);
    coordinator->describe(request);
    return take<protocol::DescribeGroupsResponse>(request.id).groups;
  };
  auto groups = describe();
  EXPECT_EQ(groups.at(0).group_state, "Stable");
  EXPECT_EQ(groups.at(0).protocol_data, "range");
  EXPECT_EQ(groups.at(0).members.size(), 2u);
  EXPECT_EQ(as_text(groups.at(0).members.at(0).member_metadata), "meta");
  EXPECT_EQ(groups.at(1).group_state, "Dead");
  EXPECT_EQ(groups.at(1).error_code, ErrorCode::kGroupIdNotFound);
  join({.member = leader});
  groups = describe();
  EXPECT_EQ(groups.at(0).group_state, "PreparingRebalance");
  EXPECT_TRUE(groups.at(0).members.at(0).member_assignment.empty());
}

TEST(GroupPlacement, Is_that_of_Kafka) {
  EXPECT_EQ(java_hash(""), 0);
  EXPECT_EQ(java_hash("hello"), 99162322);
  EXPECT_EQ(java_hash("polygenelubricants"), INT32_MIN);
  EXPECT_EQ(java_hash("\xc3\xa9"), 0xe9);
  EXPECT_EQ(java_hash("\xf0\x9f\x98\x80"), 0xd83d * 31 + 0xde00);
  EXPECT_EQ(partition_of_group("hello", 50).value, 22);
  EXPECT_EQ(partition_of_group("polygenelubricants", 50).value, 0);
}

TEST_F(Membership, Time_goes_on_when_the_only_member_left_is_a_static_one_without_a_rebalance_timeout) {
  const auto dynamic = join({.member = new_id()});
  const auto first = joined(dynamic);
  const auto fixed = join({.instance = "s", .rebalance = Duration{0}});
  EXPECT_EQ(heartbeat(first.member_id, first.generation_id), ErrorCode::kRebalanceInProgress);
  const auto again = join({.member = first.member_id});
  const auto leads = joined(again);
  const auto stays = joined(fixed);
  const auto waits = sync(stays.member_id, leads.generation_id, {{stays.member_id, "x"}, {leads.member_id, "y"}}, "s");
  sync(leads.member_id, leads.generation_id, {{stays.member_id, "x"}, {leads.member_id, "y"}});
  EXPECT_FALSE(waiting(waits));
  EXPECT_EQ(leave(leads.member_id), ErrorCode::kNone);
  for (int i = 0; i < 5; ++i) advance(seconds(1));  // hung here
  EXPECT_EQ(group().state, GroupState::kPreparingRebalance);
  advance(seconds(10));
  EXPECT_EQ(group().state, GroupState::kEmpty);
}

}  // namespace
}  // namespace weir::broker::testing
