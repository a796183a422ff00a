// Joining, syncing, heartbeats, leaving.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "broker/group/coordinator.h"
#include "broker/group/records.h"
#include "protocol/messages/12_heartbeat.h"
#include "protocol/messages/13_leave_group.h"

namespace weir::broker {

using protocol::ErrorCode;
using protocol::JoinGroupResponse;
using protocol::SyncGroupResponse;
using std::chrono::milliseconds;

namespace {

// A member that waits in its first JoinGroup has no id yet and cannot say that it is alive: it may be gone. If it is
// not, it asks again.
constexpr Duration kNewMemberJoinTimeout = std::chrono::minutes(5);
// Since JoinGroup 4 a client is told its id first and joins with it, so that one that gives up leaves no dead member
// behind.
constexpr std::int16_t kMemberIdRequired = 4;
constexpr std::int16_t kCanSkipAssignment = 9;

Response refuse_join(const Request&, ErrorCode error) { return respond(JoinGroupResponse{.error_code = error}); }
Response refuse_sync(const Request&, ErrorCode error) { return respond(SyncGroupResponse{.error_code = error}); }

SyncGroupResponse assigned(const Group& group, ByteBuffer assignment) {
  return {
      .protocol_type = group.protocol_type, .protocol_name = group.protocol_name, .assignment = std::move(assignment)};
}

bool same_protocols(const MemberProtocols& a, const MemberProtocols& b) {
  return std::ranges::equal(a, b,
                            [](const auto& x, const auto& y) { return x.name == y.name && x.metadata == y.metadata; });
}

// KIP-345: a static member is known by its instance id; whoever does not hold its newest member id is fenced.
ErrorCode check_member(const Group& group, const std::string& member_id,
                       const std::optional<std::string>& instance_id) {
  if (instance_id) {
    const std::string* holder = group.static_member(*instance_id);
    if (holder == nullptr) return ErrorCode::kUnknownMemberId;
    if (*holder != member_id) return ErrorCode::kFencedInstanceId;
  }
  return group.member(member_id) == nullptr ? ErrorCode::kUnknownMemberId : ErrorCode::kNone;
}

}  // namespace

struct GroupCoordinator::Joining {
  Now now;
  const Request& request;
  const protocol::JoinGroupRequest& message;

  Duration session_timeout() const { return milliseconds(message.session_timeout_ms); }
  // Version 0 has no rebalance timeout.
  Duration rebalance_timeout() const {
    return message.rebalance_timeout_ms < 0 ? session_timeout() : Duration(milliseconds(message.rebalance_timeout_ms));
  }
  void describe(Member& member) const {
    member.client_id = request.client_id;
    member.client_host = request.client_host;
    member.session_timeout = std::max(session_timeout(), kShortestTimeout);
    member.rebalance_timeout = std::max(rebalance_timeout(), kShortestTimeout);
    member.protocols = message.protocols;
  }
  Response refuse(ErrorCode error) const {
    return respond(JoinGroupResponse{.error_code = error, .member_id = message.member_id});
  }
};

// ---- JoinGroup -----------------------------------------------------------------------------------------------------

ErrorCode GroupCoordinator::check_join(const protocol::JoinGroupRequest& message) const {
  if (message.group_id.empty()) return ErrorCode::kInvalidGroupId;
  if (message.session_timeout_ms < config_.group_min_session_timeout_ms ||
      message.session_timeout_ms > config_.group_max_session_timeout_ms) {
    return ErrorCode::kInvalidSessionTimeout;
  }
  return ErrorCode::kNone;
}

void GroupCoordinator::join(Now now, const Request& request) {
  const Joining joining{now, request, request.as<protocol::JoinGroupRequest>()};
  const auto& message = joining.message;
  if (const ErrorCode error = check_join(message); error != ErrorCode::kNone) {
    return host_.reply(request.id, joining.refuse(error));
  }
  const bool is_new = message.member_id.empty();
  if (!is_new && find(message.group_id) == nullptr) {
    return host_.reply(request.id, joining.refuse(ErrorCode::kUnknownMemberId));
  }
  Group& group = find_or_add(message.group_id);
  if (!has_room(group, message.member_id)) {
    host_.reply(request.id, respond(JoinGroupResponse{.error_code = ErrorCode::kGroupMaxSizeReached}));
    if (!is_new && group.member(message.member_id) != nullptr) {
      drop_member(group, message.member_id);
      members_left(now, group);
    }
  } else if (!group.supports(message.protocol_type, message.protocols)) {
    host_.reply(request.id, joining.refuse(ErrorCode::kInconsistentGroupProtocol));
  } else if (is_new) {
    join_new(joining, group);
  } else {
    join_known(joining, group);
  }
  forget_if_unused(message.group_id);
}

// While members gather, those that came first stay; otherwise those that are in.
bool GroupCoordinator::has_room(const Group& group, const std::string& member_id) const {
  const Member* member = group.member(member_id);
  const auto limit = static_cast<std::size_t>(config_.group_max_size);
  switch (group.state) {
    case GroupState::kPreparingRebalance:
      return (member != nullptr && member->join != kNoRequest) || group.awaiting_join() < limit;
    case GroupState::kCompletingRebalance:
    case GroupState::kStable: return member != nullptr || group.members().size() < limit;
    default: return true;
  }
}

void GroupCoordinator::join_new(const Joining& joining, Group& group) {
  const auto& instance_id = joining.message.group_instance_id;
  std::string id = new_member_id(instance_id.value_or(joining.request.client_id));
  if (instance_id && group.static_member(*instance_id) != nullptr) return rejoin_static(joining, group, std::move(id));
  if (instance_id || joining.request.version < kMemberIdRequired) return add_member(joining, group, std::move(id));
  const MonoTime until = joining.now.mono + joining.session_timeout();
  group.pending.emplace(id, until);
  wakes_.insert({until, group.id(), id});
  host_.reply(joining.request.id,
              respond(JoinGroupResponse{.error_code = ErrorCode::kMemberIdRequired, .member_id = std::move(id)}));
}

void GroupCoordinator::join_known(const Joining& joining, Group& group) {
  const auto& message = joining.message;
  // Only dynamic members are told an id before they join.
  if (group.pending.contains(message.member_id) && !message.group_instance_id) {
    return add_member(joining, group, message.member_id);
  }
  if (const ErrorCode error = check_member(group, message.member_id, message.group_instance_id);
      error != ErrorCode::kNone) {
    return host_.reply(joining.request.id, joining.refuse(error));
  }
  Member& member = *group.member(message.member_id);
  const bool same = same_protocols(member.protocols, message.protocols);
  const bool leader = group.is_leader(member.id);
  switch (group.state) {
    case GroupState::kPreparingRebalance: return update_member(joining, group, member);
    case GroupState::kCompletingRebalance:
      // It may have missed the answer to its first JoinGroup.
      if (same) return host_.reply(joining.request.id, respond(group.generation_for(member, leader)));
      return update_member(joining, group, member);
    case GroupState::kStable:
      // The leader joins again to force a rebalance (its view of the topics changed).
      if (leader || !same) return update_member(joining, group, member);
      return host_.reply(joining.request.id, respond(group.generation_for(member, false)));
    default: return host_.reply(joining.request.id, joining.refuse(ErrorCode::kUnknownMemberId));
  }
}

void GroupCoordinator::add_member(const Joining& joining, Group& group, std::string member_id) {
  Member joined;
  joined.id = std::move(member_id);
  joined.instance_id = joining.message.group_instance_id;
  joined.is_new = true;
  joining.describe(joined);
  if (group.members().empty()) group.protocol_type = joining.message.protocol_type;
  if (group.state == GroupState::kPreparingRebalance && group.initial_rebalance) group.member_added_during_delay = true;
  Member& member = group.add(std::move(joined));
  group.park_join(member, joining.request.id);
  host_.wait(joining.request.id);
  alive(joining.now, group, member, kNewMemberJoinTimeout);
  rebalance_or_complete(joining.now, group);
}

void GroupCoordinator::update_member(const Joining& joining, Group& group, Member& member) {
  joining.describe(member);
  // The client gave up on its earlier JoinGroup.
  answer_join(group, member, {.error_code = ErrorCode::kRebalanceInProgress});
  group.park_join(member, joining.request.id);
  host_.wait(joining.request.id);
  rebalance_or_complete(joining.now, group);
}

void GroupCoordinator::rejoin_static(const Joining& joining, Group& group, std::string new_id) {
  const std::string instance_id = *joining.message.group_instance_id;
  const std::string old_leader = group.leader.value_or("");
  Member old = group.replace_static(instance_id, new_id);
  // Whoever still uses the old id is a second process under the same name, or the ghost of the first.
  const Response fenced = respond(JoinGroupResponse{.error_code = ErrorCode::kFencedInstanceId, .member_id = old.id});
  if (old.join != kNoRequest) host_.reply(old.join, fenced);
  if (old.sync != kNoRequest) {
    host_.reply(old.sync, respond(SyncGroupResponse{.error_code = ErrorCode::kFencedInstanceId}));
  }
  Member& member = *group.member(new_id);
  joining.describe(member);
  alive(joining.now, group, member, member.session_timeout);

  if (group.state != GroupState::kStable || group.protocol_name != group.select_protocol()) {
    group.park_join(member, joining.request.id);
    host_.wait(joining.request.id);
    // The leader may be assigning to the old id right now: only another round gives the new one its share.
    if (group.state == GroupState::kPreparingRebalance) return complete_join_if_all_joined(joining.now, group);
    return prepare_rebalance(joining.now, group);
  }

  // The member takes over the old one's assignment, and nobody else notices.
  const bool leader = group.is_leader(new_id);
  const bool can_skip = joining.request.version >= kCanSkipAssignment;
  JoinGroupResponse response = group.generation_for(member, leader && can_skip);
  if (can_skip) {
    response.skip_assignment = leader;
  } else {
    response.leader = old_leader;  // or the client would compute an assignment that nobody waits for
  }
  if (commit(group, {group_record(group.id(), group.to_record(joining.now.wall, nullptr))},
             {{joining.request.id, respond(std::move(response)), refuse_join}})) {
    return;
  }
  group.replace_static(instance_id, old.id);
  Member& restored = *group.member(old.id);
  restored.protocols = std::move(old.protocols);
  restored.session_timeout = old.session_timeout;
  restored.rebalance_timeout = old.rebalance_timeout;
  alive(joining.now, group, restored, restored.session_timeout);
}

void GroupCoordinator::answer_join(Group& group, Member& member, JoinGroupResponse response) {
  if (const RequestId waiting = group.take_join(member); waiting != kNoRequest) {
    host_.reply(waiting, respond(std::move(response)));
  }
}

void GroupCoordinator::answer_sync(Member& member, ErrorCode error) {
  if (const RequestId waiting = std::exchange(member.sync, kNoRequest); waiting != kNoRequest) {
    host_.reply(waiting, respond(SyncGroupResponse{.error_code = error}));
  }
}

void GroupCoordinator::drop_member(Group& group, std::string member_id) {
  Member& member = *group.member(member_id);
  answer_join(group, member, {.error_code = ErrorCode::kUnknownMemberId});
  answer_sync(member, ErrorCode::kUnknownMemberId);
  if (member.wake) wakes_.erase({*member.wake, group.id(), member_id});
  group.remove(member_id);
}

// ---- SyncGroup -----------------------------------------------------------------------------------------------------

void GroupCoordinator::sync(Now now, const Request& request) {
  const auto& message = request.as<protocol::SyncGroupRequest>();
  const auto refuse = [&](ErrorCode error) {
    host_.reply(request.id, respond(SyncGroupResponse{.error_code = error}));
  };
  const auto differs = [](const auto& said, const auto& is) { return said && is && *said != *is; };
  if (message.group_id.empty()) return refuse(ErrorCode::kInvalidGroupId);
  Group* group = find(message.group_id);
  if (group == nullptr) return refuse(ErrorCode::kUnknownMemberId);
  if (const ErrorCode error = check_member(*group, message.member_id, message.group_instance_id);
      error != ErrorCode::kNone) {
    return refuse(error);
  }
  if (message.generation_id != group->generation) return refuse(ErrorCode::kIllegalGeneration);
  if (differs(message.protocol_type, group->protocol_type) || differs(message.protocol_name, group->protocol_name)) {
    return refuse(ErrorCode::kInconsistentGroupProtocol);
  }
  if (group->state == GroupState::kPreparingRebalance) return refuse(ErrorCode::kRebalanceInProgress);

  Member& member = *group->member(message.member_id);
  group->pending_sync.erase(member.id);
  if (group->pending_sync.empty()) group->sync_deadline.reset();
  if (group->state == GroupState::kStable) {
    alive(now, *group, member, member.session_timeout);
    commit(*group, {}, {{request.id, respond(assigned(*group, member.assignment)), refuse_sync}});
    return;
  }
  WEIR_ASSERT(group->state == GroupState::kCompletingRebalance);
  answer_sync(member, ErrorCode::kRebalanceInProgress);
  member.sync = request.id;
  if (group->is_leader(member.id)) return store_assignments(now, *group, message);
  host_.wait(request.id);
}

void GroupCoordinator::store_assignments(Now now, Group& group, const protocol::SyncGroupRequest& message) {
  std::map<std::string, ByteBuffer, std::less<>> assignments;
  for (const auto& given : message.assignments) assignments[given.member_id] = given.assignment;

  std::vector<Answer> answers;
  for (const auto& [id, m] : group.members()) {
    Member& member = *group.member(id);
    const RequestId waiting = std::exchange(member.sync, kNoRequest);
    if (waiting == kNoRequest) continue;
    auto mine = assignments.find(id);
    answers.push_back(
        {waiting, respond(assigned(group, mine == assignments.end() ? ByteBuffer{} : mine->second)), refuse_sync});
    alive(now, group, member, member.session_timeout);
  }
  // Replaying the record hands out the assignments and makes the group Stable.
  if (!commit(group, {group_record(group.id(), group.to_record(now.wall, &assignments))}, std::move(answers))) {
    rebalance_or_complete(now, group);
  }
}

// ---- Heartbeat, LeaveGroup -----------------------------------------------------------------------------------------

void GroupCoordinator::heartbeat(Now now, const Request& request) {
  const auto& message = request.as<protocol::HeartbeatRequest>();
  const auto answer = [&](ErrorCode error) {
    host_.reply(request.id, respond(protocol::HeartbeatResponse{.error_code = error}));
  };
  if (message.group_id.empty()) return answer(ErrorCode::kInvalidGroupId);
  Group* group = find(message.group_id);
  if (group == nullptr) return answer(ErrorCode::kUnknownMemberId);
  if (const ErrorCode error = check_member(*group, message.member_id, message.group_instance_id);
      error != ErrorCode::kNone) {
    return answer(error);
  }
  if (message.generation_id != group->generation) return answer(ErrorCode::kIllegalGeneration);
  Member& member = *group->member(message.member_id);
  alive(now, *group, member, member.session_timeout);
  answer(group->state == GroupState::kPreparingRebalance ? ErrorCode::kRebalanceInProgress : ErrorCode::kNone);
}

void GroupCoordinator::leave(Now now, const Request& request) {
  const auto& message = request.as<protocol::LeaveGroupRequest>();
  protocol::LeaveGroupResponse response;
  Group* group = find(message.group_id);
  if (message.group_id.empty()) {
    response.error_code = ErrorCode::kInvalidGroupId;
  } else if (group == nullptr) {
    response.error_code = ErrorCode::kUnknownMemberId;
  }
  if (response.error_code != ErrorCode::kNone) return host_.reply(request.id, respond(std::move(response)));

  // Up to version 2 a request names one member, and its error is the whole answer.
  const bool batch = request.version >= 3;
  std::vector<protocol::LeaveGroupRequest::MemberIdentity> leaving = message.members;
  if (!batch) leaving = {{message.member_id, std::nullopt, std::nullopt}};
  bool any_left = false;
  bool pending_left = false;
  for (const auto& who : leaving) {
    std::string id = who.member_id;
    // An administrator removes a static member by its instance id alone.
    if (const std::string* holder = who.group_instance_id ? group->static_member(*who.group_instance_id) : nullptr;
        id.empty() && holder != nullptr) {
      id = *holder;
    }
    ErrorCode error = ErrorCode::kNone;
    if (group->pending.erase(id) > 0) {
      pending_left = true;
    } else if (error = check_member(*group, id, who.group_instance_id); error == ErrorCode::kNone) {
      drop_member(*group, id);
      any_left = true;
    }
    response.members.push_back({who.member_id, who.group_instance_id, error});
  }
  if (!batch) response.error_code = response.members.front().error_code;
  host_.reply(request.id, respond(std::move(response)));
  if (any_left) {
    members_left(now, *group);
  } else if (pending_left) {
    complete_join_if_all_joined(now, *group);
  }
  forget_if_unused(message.group_id);
}

}  // namespace weir::broker
