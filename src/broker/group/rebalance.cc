// Rebalances and what time does to members: see the diagram in coordinator.h.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "broker/group/coordinator.h"
#include "broker/group/records.h"

namespace weir::broker {

using std::chrono::milliseconds;

void GroupCoordinator::rebalance_or_complete(Now now, Group& group) {
  if (group.state == GroupState::kPreparingRebalance) return complete_join_if_all_joined(now, group);
  prepare_rebalance(now, group);
}

void GroupCoordinator::prepare_rebalance(Now now, Group& group) {
  if (group.state == GroupState::kCompletingRebalance) {
    for (const auto& [id, m] : group.members()) {
      Member& member = *group.member(id);
      // It could not send heartbeats while it waited.
      if (member.sync != kNoRequest) alive(now, group, member, member.session_timeout);
      answer_sync(member, ErrorCode::kRebalanceInProgress);
    }
  }
  group.sync_deadline.reset();
  group.initial_rebalance = group.state == GroupState::kEmpty;
  group.member_added_during_delay = false;
  group.state = GroupState::kPreparingRebalance;
  if (!group.initial_rebalance && group.all_joined()) return complete_join(now, group);

  Duration wait = group.rebalance_timeout();
  if (group.initial_rebalance) {
    // The first members of a group seldom come together: without a delay each would cause a rebalance of its own.
    wait = group.initial_delay = milliseconds(config_.group_initial_rebalance_delay_ms);
    group.initial_remaining = std::max(group.rebalance_timeout() - wait, Duration{0});
    if (wait == Duration{0}) return complete_join(now, group);
  }
  group.join_deadline = now.mono + wait;
  wake_group_at(*group.join_deadline, group);
}

void GroupCoordinator::initial_delay_over(Now now, Group& group) {
  if (!std::exchange(group.member_added_during_delay, false) || group.initial_remaining == Duration{0}) {
    return complete_join(now, group);
  }
  const Duration passed = group.initial_delay;
  group.initial_delay =
      std::min<Duration>(milliseconds(config_.group_initial_rebalance_delay_ms), group.initial_remaining);
  group.initial_remaining = std::max(group.initial_remaining - passed, Duration{0});
  group.join_deadline = now.mono + group.initial_delay;
  wake_group_at(*group.join_deadline, group);
}

void GroupCoordinator::complete_join_if_all_joined(Now now, Group& group) {
  // The initial delay is waited for in full: others may be on their way.
  if (group.state == GroupState::kPreparingRebalance && !group.initial_rebalance && group.all_joined()) {
    complete_join(now, group);
  }
}

void GroupCoordinator::complete_join(Now now, Group& group) {
  WEIR_ASSERT(group.state == GroupState::kPreparingRebalance);
  group.join_deadline.reset();
  // Who did not come back is out; a static member keeps its place until its session ends.
  std::vector<std::string> gone;
  for (const auto& [id, member] : group.members()) {
    if (member.join == kNoRequest && !member.instance_id) gone.push_back(id);
  }
  for (std::string& id : gone) drop_member(group, std::move(id));

  if (!group.members().empty() && !group.elect_joined_leader()) {
    // Only static members that are away: wait until they come back or their sessions end.
    group.join_deadline = now.mono + group.rebalance_timeout();
    return wake_group_at(*group.join_deadline, group);
  }
  ++group.generation;
  group.pending_sync.clear();
  group.initial_rebalance = false;
  if (group.members().empty()) {
    group.state = GroupState::kEmpty;
    group.protocol_name.reset();
    group.leader.reset();
    commit(group, {group_record(group.id(), group.to_record(now.wall, nullptr))}, {});
    return;
  }
  group.protocol_name = group.select_protocol();
  group.state = GroupState::kCompletingRebalance;
  for (const auto& [id, m] : group.members()) {
    Member& member = *group.member(id);
    answer_join(group, member, group.generation_for(member, group.is_leader(id)));
    alive(now, group, member, member.session_timeout);
    member.is_new = false;
    group.pending_sync.insert(id);
  }
  group.sync_deadline = now.mono + group.rebalance_timeout();
  wake_group_at(*group.sync_deadline, group);
}

void GroupCoordinator::sync_time_over(Now now, Group& group) {
  if (group.state != GroupState::kCompletingRebalance && group.state != GroupState::kStable) return;
  if (group.pending_sync.empty()) return;
  for (const std::string& id : std::vector<std::string>(group.pending_sync.begin(), group.pending_sync.end())) {
    drop_member(group, id);
  }
  prepare_rebalance(now, group);
}

void GroupCoordinator::members_left(Now now, Group& group) {
  switch (group.state) {
    case GroupState::kStable:
    case GroupState::kCompletingRebalance: return prepare_rebalance(now, group);
    case GroupState::kPreparingRebalance: return complete_join_if_all_joined(now, group);
    default: return;
  }
}

// ---- Time ----------------------------------------------------------------------------------------------------------

void GroupCoordinator::alive(Now now, Group& group, Member& member, Duration session) {
  member.expires = now.mono + session;
  // A wake-up that comes too early goes back to sleep: heartbeats do not touch the list of wake-ups.
  if (member.wake && *member.wake <= member.expires) return;
  if (member.wake) wakes_.erase({*member.wake, group.id(), member.id});
  member.wake = member.expires;
  wakes_.insert({member.expires, group.id(), member.id});
}

void GroupCoordinator::wake_group_at(MonoTime when, const Group& group) { wakes_.insert({when, group.id(), {}}); }

void GroupCoordinator::session_over(Now now, Group& group, const std::string& member_id) {
  if (auto it = group.pending.find(member_id); it != group.pending.end()) {
    if (it->second > now.mono) return;  // another wake-up is set for then
    group.pending.erase(it);
    return complete_join_if_all_joined(now, group);
  }
  Member* member = group.member(member_id);
  if (member == nullptr || !member->wake || *member->wake > now.mono) return;
  member->wake.reset();
  if (member->expires > now.mono) return alive(now, group, *member, member->expires - now.mono);
  // Who waits for the others is there, unless it has been so long that a new member may have given up.
  if (!member->is_new && (member->join != kNoRequest || member->sync != kNoRequest)) {
    return alive(now, group, *member, member->session_timeout);
  }
  drop_member(group, member_id);
  members_left(now, group);
}

void GroupCoordinator::tick(Now now) {
  // Only what is due already: what these set for this very moment is for the next tick.
  std::vector<Wake> due;
  while (!wakes_.empty() && wakes_.begin()->when <= now.mono) {
    due.push_back(std::move(wakes_.extract(wakes_.begin()).value()));
  }
  for (const Wake& wake : due) {
    Group* group = find(wake.group);
    if (group == nullptr) continue;
    if (!wake.member.empty()) {
      session_over(now, *group, wake.member);
    } else {
      if (group->join_deadline && *group->join_deadline <= now.mono) {
        group->join_deadline.reset();
        if (group->initial_rebalance) {
          initial_delay_over(now, *group);
        } else {
          complete_join(now, *group);
        }
      }
      if (group->sync_deadline && *group->sync_deadline <= now.mono) {
        group->sync_deadline.reset();
        sync_time_over(now, *group);
      }
    }
    forget_if_unused(wake.group);
  }
  if (next_expiry_check_ && *next_expiry_check_ <= now.mono) expire_offsets(now);
}

std::optional<MonoTime> GroupCoordinator::next_deadline() const {
  if (wakes_.empty()) return next_expiry_check_;
  const MonoTime first = wakes_.begin()->when;
  return next_expiry_check_ ? std::min(first, *next_expiry_check_) : first;
}

}  // namespace weir::broker
