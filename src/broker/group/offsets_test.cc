#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "broker/group/harness.h"
#include "broker/group/records.h"
#include "protocol/codec.h"
#include "protocol/records/consumer_protocol.h"

namespace weir::broker::testing {
namespace {

const TopicPartition kT0{"t", PartitionId(0)};
const TopicPartition kT1{"t", PartitionId(1)};
const TopicPartition kU0{"u", PartitionId(0)};

struct Offsets : ::testing::Test, Harness {};

TEST_F(Offsets, A_commit_is_fetched_and_survives_a_restart) {
  EXPECT_EQ(commit_offset(kT0, 42), ErrorCode::kNone);
  EXPECT_EQ(commit_offset(kT0, 43, "", -1, "g", "note"), ErrorCode::kNone);
  EXPECT_EQ(commit_offset(kU0, 7), ErrorCode::kNone);
  for (int i = 0; i < 2; ++i, restart()) {
    EXPECT_EQ(offsets(), (std::map<TopicPartition, std::int64_t>{{kT0, 43}, {kU0, 7}}));
    EXPECT_EQ(group().offsets.at(kT0).metadata, "note");
    EXPECT_EQ(group().offsets.at(kT0).leader_epoch, 7);
  }
}

TEST_F(Offsets, What_was_not_committed_is_minus_one_also_for_groups_nobody_knows) {
  commit_offset(kT0, 5);
  const Request request =
      make(protocol::OffsetFetchRequest{.group_id = "g", .topics = {{{"t", {0, 1}}, {"never", {0}}}}}, 5);
  coordinator->fetch_offsets(request);
  const auto old = take<protocol::OffsetFetchResponse>(request.id);
  EXPECT_EQ(old.topics.at(0).partitions.at(0).committed_offset, 5);
  EXPECT_EQ(old.topics.at(0).partitions.at(1).committed_offset, -1);
  EXPECT_EQ(old.topics.at(1).partitions.at(0).error_code, ErrorCode::kNone);

  protocol::OffsetFetchRequest many{.require_stable = true};
  many.groups.push_back({"g", {}, -1, std::nullopt});
  many.groups.push_back({"nobody", {}, -1, {{{"t", {}, {0}}}}});
  const Request batch = make(std::move(many), 8);
  coordinator->fetch_offsets(batch);
  const auto groups = take<protocol::OffsetFetchResponse>(batch.id).groups;
  EXPECT_EQ(groups.at(0).topics.at(0).partitions.at(0).committed_offset, 5);
  EXPECT_EQ(groups.at(1).topics.at(0).partitions.at(0).committed_offset, -1);
  EXPECT_EQ(groups.at(1).error_code, ErrorCode::kNone);
}

TEST_F(Offsets, Only_members_of_the_generation_commit_to_a_group_in_use) {
  EXPECT_EQ(commit_offset(kT0, 1, "who", 3), ErrorCode::kIllegalGeneration) << "no such group";
  const std::string member = stable_alone();
  EXPECT_EQ(commit_offset(kT0, 1), ErrorCode::kUnknownMemberId) << "an administrator must not overrule members";
  EXPECT_EQ(commit_offset(kT0, 1, "who", 1), ErrorCode::kUnknownMemberId);
  EXPECT_EQ(commit_offset(kT0, 1, member, 0), ErrorCode::kIllegalGeneration);
  EXPECT_EQ(commit_offset(kT0, 2, member, 1), ErrorCode::kNone);
  EXPECT_EQ(joined(join({.member = member})).generation_id, 2);
  EXPECT_EQ(commit_offset(kT0, 3, member, 2), ErrorCode::kRebalanceInProgress);
  leave(member);
  EXPECT_EQ(commit_offset(kT0, 4), ErrorCode::kNone);
  EXPECT_EQ(offsets().at(kT0), 4);
}

TEST_F(Offsets, Each_partition_of_a_commit_has_its_own_error) {
  EXPECT_EQ(commit_offset({"unknown", PartitionId(0)}, 1), ErrorCode::kUnknownTopicOrPartition);
  EXPECT_EQ(commit_offset({"t", PartitionId(9)}, 1), ErrorCode::kUnknownTopicOrPartition);
  const auto most = static_cast<std::size_t>(config.offset_metadata_max_bytes);
  EXPECT_EQ(commit_offset(kT0, 1, "", -1, "g", std::string(most + 1, 'x')), ErrorCode::kOffsetMetadataTooLarge);
  EXPECT_EQ(commit_offset(kT0, 1, "", -1, "g", std::string(most, 'x')), ErrorCode::kNone);
}

TEST_F(Offsets, A_commit_that_cannot_be_stored_is_refused_and_changes_nothing) {
  commit_offset(kT0, 1);
  full = true;
  EXPECT_EQ(commit_offset(kT0, 2), ErrorCode::kCoordinatorNotAvailable);
  EXPECT_EQ(offsets().at(kT0), 1);
}

TEST_F(Offsets, A_commit_counts_as_a_sign_of_life) {
  const std::string member = stable_alone();
  for (int i = 0; i < 4; ++i) {
    advance(seconds(8));
    EXPECT_EQ(commit_offset(kT0, i, member, 1), ErrorCode::kNone);
  }
}

TEST_F(Offsets, A_dead_group_keeps_its_offsets_for_the_retention_time_after_its_last_member) {
  // Field: lag must not disappear when the consumers die.
  const std::string member = stable_alone();
  commit_offset(kT0, 50, member, 1);
  const Duration retention = std::chrono::minutes(config.offsets_retention_minutes);
  advance(std::chrono::minutes(1));
  advance(retention - std::chrono::hours(1));
  EXPECT_EQ(group().state, GroupState::kEmpty) << "the member's session is long over";
  EXPECT_EQ(offsets().at(kT0), 50);
  advance(std::chrono::hours(2));
  advance(std::chrono::hours(1));
  EXPECT_EQ(coordinator->groups().count("g"), 0u);
  restart();
  EXPECT_TRUE(coordinator->groups().empty());
}

TEST_F(Offsets, A_stable_group_loses_only_offsets_of_topics_it_no_longer_reads) {
  config.group_max_session_timeout_ms = INT32_MAX;
  const auto subscription =
      protocol::encode_versioned(protocol::ConsumerProtocolSubscription{.topics = {"t"}}, std::int16_t{1});
  const std::string member = stable_alone(
      {.instance = "a", .session = std::chrono::hours(24 * 20), .topics_metadata = std::string(as_text(subscription))});
  const Request request =
      make(protocol::OffsetCommitRequest{.group_id = "g",
                                         .generation_id_or_member_epoch = 1,
                                         .member_id = member,
                                         .topics = {{"t", {}, {{0, 1, -1, {}}}}, {"u", {}, {{0, 1, -1, {}}}}}},
           5);
  coordinator->commit_offsets(clock.now(), request);
  advance(std::chrono::minutes(config.offsets_retention_minutes) + seconds(1));
  EXPECT_EQ(offsets(), (std::map<TopicPartition, std::int64_t>{{kT0, 1}}));
}

TEST_F(Offsets, A_retention_time_named_by_an_old_client_is_kept) {
  const Request request = make(
      protocol::OffsetCommitRequest{
          .group_id = "g", .retention_time_ms = 3600 * 1000, .topics = {{"t", {}, {{0, 1, -1, {}}}}}},
      3);
  coordinator->commit_offsets(clock.now(), request);
  restart();
  advance(std::chrono::minutes(59));
  EXPECT_EQ(offsets().size(), 1u);
  advance(std::chrono::minutes(11));
  EXPECT_TRUE(offsets().empty());
}

TEST_F(Offsets, Times_beyond_all_bounds_do_no_harm) {
  const Request request = make(
      protocol::OffsetCommitRequest{
          .group_id = "g", .retention_time_ms = INT64_MAX, .topics = {{"t", {}, {{0, 1, -1, {}}}}}},
      3);
  coordinator->commit_offsets(clock.now(), request);
  protocol::OffsetCommitValue value{.offset = 9, .commit_timestamp = INT64_MIN, .expire_timestamp = INT64_MAX};
  log.push_back({offset_record("g", kT1, {}).key, protocol::encode_versioned(value, std::int16_t{1})});
  protocol::GroupMetadataValue empty{.current_state_timestamp = INT64_MAX};
  log.push_back(group_record("h", empty));
  restart();
  advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(offsets(), (std::map<TopicPartition, std::int64_t>{{kT0, 1}, {kT1, 9}}));
}

TEST_F(Offsets, A_deleted_topic_takes_its_offsets_along_also_when_the_broker_died_in_between) {
  commit_offset(kT0, 1);
  commit_offset(kU0, 2);
  topics.erase("t");
  coordinator->topic_deleted("t");
  EXPECT_EQ(offsets(), (std::map<TopicPartition, std::int64_t>{{kU0, 2}}));
  topics.erase("u");
  restart();
  topics = {"t", "u"};
  EXPECT_TRUE(offsets().empty());
  restart();
  EXPECT_TRUE(offsets().empty());
}

TEST_F(Offsets, Records_nobody_can_read_are_skipped) {
  commit_offset(kT0, 1);
  const GroupRecord good = log.back();
  log.push_back({to_buffer(as_bytes("\x01")), {}});
  log.push_back({good.key, to_buffer(as_bytes(std::string_view("\0\3", 2)))});
  log.push_back({to_buffer(as_bytes(std::string_view("\0\x0b later", 8))), to_buffer(as_bytes("later"))});
  restart();
  EXPECT_EQ(offsets().at(kT0), 1);
}

TEST(GroupRecords, Have_the_bytes_of_Kafka) {
  const auto record = offset_record("g", kT0, {Offset(5), 2, "m", from_unix_ms(9), std::nullopt});
  EXPECT_EQ(as_text(record.key), std::string_view("\0\1\0\1g\0\1t\0\0\0\0", 12));
  EXPECT_EQ(as_text(*record.value), std::string_view("\0\3\0\0\0\0\0\0\0\5\0\0\0\2\0\1m\0\0\0\0\0\0\0\x09", 25));
  EXPECT_EQ(as_text(group_tombstone("g").key), std::string_view("\0\2\0\1g", 5));
}

// Field: after any mix of commits, deletions and expiry a restarted broker answers what the live one answered.
RC_GTEST_PROP(OffsetsProperty, A_restart_never_changes_what_is_answered, ()) {
  Harness h;
  const std::vector<std::string> groups = {"a", "b", "c"};
  const auto all = [&] {
    std::vector<std::map<TopicPartition, std::int64_t>> out;
    for (const auto& g : groups) out.push_back(h.offsets(g));
    return out;
  };
  std::map<std::string, std::map<TopicPartition, std::int64_t>> model;
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const std::string g = *rc::gen::elementOf(groups);
    const TopicPartition tp{*rc::gen::element<std::string>("t", "u"), PartitionId(*rc::gen::inRange(0, 5))};
    switch (*rc::gen::inRange(0, 8)) {
      case 0: h.advance(std::chrono::hours(*rc::gen::inRange(1, 24 * 5))); break;
      case 1: h.topics.erase(tp.topic), h.coordinator->topic_deleted(tp.topic), h.topics = {"t", "u"}; break;
      case 2: h.full = !h.full; break;
      case 3: h.new_id(g); break;  // somebody wants to join, and never does
      default: h.commit_offset(tp, *rc::gen::inRange(0, 1000), "", -1, g);
    }
    if (h.full) continue;  // a deletion may have been lost: the restart would find the topics there again
    const auto before = all();
    h.restart();
    RC_ASSERT(all() == before);
  }
}

}  // namespace
}  // namespace weir::broker::testing
