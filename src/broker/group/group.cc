#include "broker/group/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "broker/group/records.h"
#include "protocol/codec.h"
#include "protocol/records/consumer_protocol.h"
#include "wire/uuid.h"

namespace weir::broker {

using std::chrono::milliseconds;

std::string_view name(GroupState state) {
  switch (state) {
    case GroupState::kEmpty: return "Empty";
    case GroupState::kPreparingRebalance: return "PreparingRebalance";
    case GroupState::kCompletingRebalance: return "CompletingRebalance";
    case GroupState::kStable: return "Stable";
    case GroupState::kDead: return "Dead";
  }
  return "Unknown";
}

std::string new_member_id(std::string_view prefix) {
  std::string id = fmt::format("{}-", prefix);
  const wire::Uuid uuid = wire::random_uuid();
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    id += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return id;
}

ByteView Member::metadata(std::string_view protocol) const {
  for (const auto& p : protocols) {
    if (p.name == protocol) return p.metadata;
  }
  return {};
}

Member* Group::member(std::string_view id) {
  auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}
const Member* Group::member(std::string_view id) const {
  auto it = members_.find(id);
  return it == members_.end() ? nullptr : &it->second;
}
const std::string* Group::static_member(std::string_view instance_id) const {
  auto it = static_members_.find(instance_id);
  return it == static_members_.end() ? nullptr : &it->second;
}

Member& Group::add(Member member) {
  if (!leader) leader = member.id;
  if (member.instance_id) static_members_[*member.instance_id] = member.id;
  pending.erase(member.id);
  std::string id = member.id;
  auto [it, added] = members_.emplace(std::move(id), std::move(member));
  WEIR_ASSERT(added && it->second.join == kNoRequest);
  return it->second;
}

void Group::remove(std::string_view member_id) {
  auto it = members_.find(member_id);
  if (it == members_.end()) return;
  const Member& member = it->second;
  if (member.join != kNoRequest) --awaiting_join_;
  if (member.instance_id) {
    auto owner = static_members_.find(*member.instance_id);
    if (owner != static_members_.end() && owner->second == member.id) static_members_.erase(owner);
  }
  pending_sync.erase(member.id);
  const bool led = is_leader(member.id);
  members_.erase(it);
  if (led) leader = members_.empty() ? std::nullopt : std::optional(members_.begin()->first);
}

Member Group::replace_static(std::string_view instance_id, std::string new_id) {
  auto owner = static_members_.find(instance_id);
  WEIR_ASSERT(owner != static_members_.end());
  auto node = members_.extract(owner->second);
  WEIR_ASSERT(!node.empty());
  Member old = node.mapped();
  if (old.join != kNoRequest) --awaiting_join_;
  pending_sync.erase(old.id);
  if (is_leader(old.id)) leader = new_id;
  owner->second = new_id;
  node.mapped().id = new_id;
  node.mapped().join = node.mapped().sync = kNoRequest;
  node.mapped().wake.reset();
  node.key() = std::move(new_id);
  members_.insert(std::move(node));
  return old;
}

void Group::park_join(Member& member, RequestId request) {
  WEIR_ASSERT(member.join == kNoRequest && request != kNoRequest);
  member.join = request;
  ++awaiting_join_;
}

RequestId Group::take_join(Member& member) {
  if (member.join != kNoRequest) --awaiting_join_;
  return std::exchange(member.join, kNoRequest);
}

bool Group::elect_joined_leader() {
  if (!leader) return false;
  if (const Member* current = member(*leader); current != nullptr && current->join != kNoRequest) return true;
  for (const auto& [id, member] : members_) {
    if (member.join == kNoRequest) continue;
    leader = id;
    return true;
  }
  return false;
}

Duration Group::rebalance_timeout() const {
  Duration longest{};
  for (const auto& [id, member] : members_) longest = std::max(longest, member.rebalance_timeout);
  return longest;
}

bool Group::supports(std::string_view type, const MemberProtocols& protocols) const {
  if (members_.empty()) return !type.empty() && !protocols.empty();
  if (protocol_type != type) return false;
  return std::ranges::any_of(protocols, [&](const auto& p) {
    return std::ranges::all_of(members_, [&](const auto& entry) {
      return std::ranges::any_of(entry.second.protocols, [&](const auto& q) { return q.name == p.name; });
    });
  });
}

std::string Group::select_protocol() const {
  WEIR_ASSERT(!members_.empty());
  std::map<std::string_view, std::size_t> supporters;
  for (const auto& [id, member] : members_) {
    std::set<std::string_view> names;
    for (const auto& p : member.protocols) names.insert(p.name);
    for (std::string_view name : names) ++supporters[name];
  }
  std::map<std::string_view, std::size_t> votes;
  for (const auto& [id, member] : members_) {
    for (const auto& p : member.protocols) {
      if (supporters[p.name] != members_.size()) continue;
      ++votes[p.name];
      break;
    }
  }
  // Nobody joins without a common protocol, and a member changes its own only when one is left.
  WEIR_ASSERT(!votes.empty());
  auto most = std::ranges::max_element(votes, {}, [](const auto& entry) { return entry.second; });
  return std::string(most->first);
}

std::optional<std::set<std::string>> Group::subscribed_topics() const {
  if (protocol_type != "consumer" || !protocol_name) return std::nullopt;
  std::set<std::string> topics;
  for (const auto& [id, member] : members_) {
    auto subscription = protocol::decode_versioned<protocol::ConsumerProtocolSubscription>(
        member.metadata(*protocol_name), /*newer_ok=*/true);
    if (!subscription) return std::nullopt;
    topics.insert(subscription->topics.begin(), subscription->topics.end());
  }
  return topics;
}

protocol::JoinGroupResponse Group::generation_for(const Member& member, bool with_members) const {
  protocol::JoinGroupResponse response{.generation_id = generation,
                                       .protocol_type = protocol_type,
                                       .protocol_name = protocol_name,
                                       .leader = leader.value_or(""),
                                       .member_id = member.id};
  if (!with_members) return response;
  for (const auto& [id, m] : members_) {
    response.members.push_back({id, m.instance_id, to_buffer(m.metadata(protocol_name.value_or("")))});
  }
  return response;
}

protocol::GroupMetadataValue Group::to_record(WallTime now,
                                              const std::map<std::string, ByteBuffer, std::less<>>* assignments) const {
  protocol::GroupMetadataValue value{.protocol_type = protocol_type.value_or(""),
                                     .generation = generation,
                                     .protocol = protocol_name,
                                     .leader = members_.empty() ? std::nullopt : leader,
                                     .current_state_timestamp = to_unix_ms(now)};
  for (const auto& [id, member] : members_) {
    auto& stored = value.members.emplace_back();
    stored.member_id = id;
    stored.group_instance_id = member.instance_id;
    stored.client_id = member.client_id;
    stored.client_host = member.client_host;
    stored.rebalance_timeout = static_cast<std::int32_t>(member.rebalance_timeout / milliseconds(1));
    stored.session_timeout = static_cast<std::int32_t>(member.session_timeout / milliseconds(1));
    stored.subscription = to_buffer(member.metadata(protocol_name.value_or("")));
    stored.assignment = member.assignment;
    if (assignments != nullptr) {
      auto given = assignments->find(id);
      stored.assignment = given == assignments->end() ? ByteBuffer{} : given->second;
    }
  }
  return value;
}

void Group::load(const protocol::GroupMetadataValue& value) {
  members_.clear();
  static_members_.clear();
  pending.clear();
  pending_sync.clear();
  awaiting_join_ = 0;
  generation = value.generation;
  protocol_type = value.protocol_type.empty() ? std::nullopt : std::optional(value.protocol_type);
  protocol_name = value.protocol;
  leader.reset();
  state_since.reset();
  if (value.current_state_timestamp >= 0) state_since = stored_time(value.current_state_timestamp);
  for (const auto& stored : value.members) {
    if (member(stored.member_id) != nullptr) continue;
    Member member;
    member.id = stored.member_id;
    member.instance_id = stored.group_instance_id;
    member.client_id = stored.client_id;
    member.client_host = stored.client_host;
    member.session_timeout = std::max<Duration>(milliseconds(stored.session_timeout), kShortestTimeout);
    member.rebalance_timeout = stored.rebalance_timeout < 0
                                   ? member.session_timeout
                                   : std::max<Duration>(milliseconds(stored.rebalance_timeout), kShortestTimeout);
    member.protocols = {{value.protocol.value_or(""), stored.subscription}};
    member.assignment = stored.assignment;
    add(std::move(member));
  }
  leader = value.leader;
  if (leader && member(*leader) == nullptr)
    leader = members_.empty() ? std::nullopt : std::optional(members_.begin()->first);
  state = members_.empty() ? GroupState::kEmpty : GroupState::kStable;
}

}  // namespace weir::broker
