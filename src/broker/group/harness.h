// For tests: a coordinator in virtual time, with a log that can refuse appends, and clients that check their answers.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "broker/group/coordinator.h"
#include "protocol/messages/11_join_group.h"
#include "protocol/messages/12_heartbeat.h"
#include "protocol/messages/13_leave_group.h"
#include "protocol/messages/14_sync_group.h"
#include "protocol/messages/8_offset_commit.h"
#include "protocol/messages/9_offset_fetch.h"

namespace weir::broker::testing {

using protocol::ErrorCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How a client joins.
struct JoinAs {
  std::string member;
  std::optional<std::string> instance;
  std::int16_t version = 5;
  std::vector<std::string> protocols = {"range"};
  Duration session = seconds(10);
  Duration rebalance = seconds(60);
  std::string topics_metadata = "meta";
};

class Harness : public GroupHost {
 public:
  Harness() {
    config.group_initial_rebalance_delay_ms = 0;
    restart();
  }

  /// A new coordinator that knows only what is in the log. Requests that were open are gone with their connections.
  void restart() {
    coordinator = std::make_unique<GroupCoordinator>(config, *this);
    open.clear();
    for (const auto& r : log) replay(r);
    coordinator->loaded(clock.now());
  }
  void advance(Duration by) {
    clock.advance(by);
    coordinator->tick(clock.now());
  }

  // ---- GroupHost ----------------------------------------------------------------------------------------------------

  bool commit(GroupDecision decision) override {
    for (const auto& answer : decision.answers) {
      const auto it = open.find(answer.request);
      if (it != open.end()) {
        reply(answer.request, full && !decision.records.empty()
                                  ? answer.refuse(it->second, ErrorCode::kCoordinatorNotAvailable)
                                  : answer.response);
      }
    }
    if (full && !decision.records.empty()) return false;
    for (const auto& r : decision.records) {
      log.push_back(r);
      replay(r);
    }
    return true;
  }
  void reply(RequestId id, Response response) override {
    if (open.erase(id) == 0) return;
    EXPECT_TRUE(answers.emplace(id, std::move(response)).second) << "answered twice";
  }
  void wait(RequestId id) override { EXPECT_TRUE(open.contains(id)); }
  PartitionId partition_of(std::string_view group) const override { return partition_of_group(group, 50); }
  bool has(const TopicPartition& tp) const override { return tp.partition.value < 4 && topics.contains(tp.topic); }

  // ---- Clients ------------------------------------------------------------------------------------------------------

  template <typename M>
  Request make(M message, std::int16_t version) {
    Request request;
    request.id = RequestId(++last_id);
    request.version = version;
    request.client_id = "client";
    request.client_host = "/127.0.0.1";
    request.message = std::make_shared<const M>(std::move(message));
    open.emplace(request.id, request);
    return request;
  }
  /// The answer, which must be there; once.
  template <typename R>
  R take(RequestId id) {
    auto it = answers.find(id);
    EXPECT_NE(it, answers.end()) << "no answer yet";
    if (it == answers.end()) return {};
    R response = *static_cast<const R*>(it->second.get());
    answers.erase(it);
    return response;
  }
  bool waiting(RequestId id) const { return open.contains(id); }

  RequestId join(const JoinAs& as, const std::string& group = "g") {
    protocol::JoinGroupRequest message{
        .group_id = group,
        .session_timeout_ms = static_cast<std::int32_t>(as.session / milliseconds(1)),
        .rebalance_timeout_ms = static_cast<std::int32_t>(as.rebalance / milliseconds(1)),
        .member_id = as.member,
        .group_instance_id = as.instance,
        .protocol_type = "consumer"};
    for (const auto& p : as.protocols) message.protocols.push_back({p, to_buffer(as_bytes(as.topics_metadata))});
    const Request request = make(std::move(message), as.version);
    coordinator->join(clock.now(), request);
    return request.id;
  }
  protocol::JoinGroupResponse joined(RequestId id) { return take<protocol::JoinGroupResponse>(id); }
  /// Asks for an id and joins with it: the way of a client of today.
  std::string new_id(const std::string& group = "g") {
    const auto told = joined(join({}, group));
    EXPECT_EQ(told.error_code, ErrorCode::kMemberIdRequired);
    return told.member_id;
  }
  RequestId sync(const std::string& member, std::int32_t generation,
                 const std::map<std::string, std::string>& assignments = {}, std::optional<std::string> instance = {}) {
    protocol::SyncGroupRequest message{
        .group_id = "g", .generation_id = generation, .member_id = member, .group_instance_id = std::move(instance)};
    for (const auto& [id, what] : assignments) message.assignments.push_back({id, to_buffer(as_bytes(what))});
    const Request request = make(std::move(message), 5);
    coordinator->sync(clock.now(), request);
    return request.id;
  }
  protocol::SyncGroupResponse synced(RequestId id) { return take<protocol::SyncGroupResponse>(id); }
  ErrorCode heartbeat(const std::string& member, std::int32_t generation, std::optional<std::string> instance = {}) {
    const Request request = make(protocol::HeartbeatRequest{.group_id = "g",
                                                            .generation_id = generation,
                                                            .member_id = member,
                                                            .group_instance_id = std::move(instance)},
                                 4);
    coordinator->heartbeat(clock.now(), request);
    return take<protocol::HeartbeatResponse>(request.id).error_code;
  }
  ErrorCode leave(const std::string& member) {
    const Request request = make(protocol::LeaveGroupRequest{.group_id = "g", .members = {{member, {}, {}}}}, 5);
    coordinator->leave(clock.now(), request);
    const auto left = take<protocol::LeaveGroupResponse>(request.id);
    return left.members.empty() ? left.error_code : left.members.front().error_code;
  }
  ErrorCode commit_offset(const TopicPartition& tp, std::int64_t offset, const std::string& member = "",
                          std::int32_t generation = -1, const std::string& group = "g",
                          const std::string& metadata = "") {
    protocol::OffsetCommitRequest message{
        .group_id = group, .generation_id_or_member_epoch = generation, .member_id = member};
    message.topics.push_back({tp.topic, {}, {{tp.partition.value, offset, 7, metadata}}});
    const Request request = make(std::move(message), 7);
    coordinator->commit_offsets(clock.now(), request);
    return take<protocol::OffsetCommitResponse>(request.id).topics.at(0).partitions.at(0).error_code;
  }
  /// Everything the group has committed, as OffsetFetch tells it.
  std::map<TopicPartition, std::int64_t> offsets(const std::string& group = "g") {
    protocol::OffsetFetchRequest message;
    message.groups.push_back({group, {}, -1, std::nullopt});
    const Request request = make(std::move(message), 9);
    coordinator->fetch_offsets(request);
    std::map<TopicPartition, std::int64_t> all;
    const auto response = take<protocol::OffsetFetchResponse>(request.id);
    for (const auto& topic : response.groups.at(0).topics) {
      for (const auto& p : topic.partitions) all[{topic.name, PartitionId(p.partition_index)}] = p.committed_offset;
    }
    return all;
  }

  /// One member, Stable, generation 1; returns its id.
  std::string stable_alone(const JoinAs& as = {}) {
    JoinAs first = as;
    if (!as.instance) first.member = new_id();
    const auto member = joined(join(first));
    EXPECT_EQ(member.error_code, ErrorCode::kNone);
    const auto mine = synced(sync(member.member_id, member.generation_id, {{member.member_id, "all"}}, as.instance));
    EXPECT_EQ(as_text(mine.assignment), "all");
    return member.member_id;
  }
  const Group& group(const std::string& id = "g") const { return coordinator->groups().at(id); }

  BrokerConfig config;
  ManualClock clock;
  std::set<std::string> topics = {"t", "u"};
  std::vector<GroupRecord> log;
  bool full = false;  ///< Appends fail.
  std::unique_ptr<GroupCoordinator> coordinator;
  std::map<RequestId, Request> open;
  std::map<RequestId, Response> answers;
  std::uint64_t last_id = 0;

 private:
  void replay(const GroupRecord& r) {
    coordinator->replay(PartitionId(0), r.key, r.value ? std::optional<ByteView>(*r.value) : std::nullopt,
                        clock.now().wall);
  }
};

}  // namespace weir::broker::testing
