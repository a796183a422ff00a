#include "broker/group/coordinator.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "broker/group/records.h"
#include "protocol/codec.h"
#include "protocol/messages/15_describe_groups.h"
#include "protocol/messages/16_list_groups.h"

namespace weir::broker {

namespace {

// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: all there is to do with a group, while nobody is forbidden
// anything.
constexpr std::int32_t kEveryGroupOperation = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}
bool passes(const std::vector<std::string>& filter, std::string_view word) {
  return filter.empty() || std::ranges::any_of(filter, [&](const std::string& f) { return same_word(f, word); });
}

}  // namespace

GroupCoordinator::GroupCoordinator(const BrokerConfig& config, GroupHost& host) : config_(config), host_(host) {}
GroupCoordinator::~GroupCoordinator() = default;

Group* GroupCoordinator::find(std::string_view group_id) {
  auto it = groups_.find(group_id);
  return it == groups_.end() ? nullptr : &it->second;
}

Group& GroupCoordinator::find_or_add(const std::string& group_id) {
  return groups_.try_emplace(group_id, group_id).first->second;
}

void GroupCoordinator::forget_if_unused(const std::string& group_id) {
  const Group* group = find(group_id);
  if (group != nullptr && group->state == GroupState::kEmpty && group->unused() && !group->stored) {
    groups_.erase(group_id);
  }
}

bool GroupCoordinator::commit(const Group& group, std::vector<GroupRecord> records, std::vector<Answer> answers) {
  return host_.commit({host_.partition_of(group.id()), std::move(records), std::move(answers)});
}

// ---- Replay --------------------------------------------------------------------------------------------------------

void GroupCoordinator::replay(PartitionId partition, ByteView key_bytes, std::optional<ByteView> value_bytes,
                              WallTime /*timestamp*/) {
  const auto damaged = [&](const Error& error) {
    log::warn("__consumer_offsets-{}: skipped a record that cannot be read: {}", partition.value, error.message);
  };
  auto key = decode_group_key(key_bytes);
  if (!key) return damaged(key.error());

  if (const auto* offset_key = std::get_if<protocol::OffsetCommitKey>(&*key)) {
    const TopicPartition tp{offset_key->topic, PartitionId(offset_key->partition)};
    if (!value_bytes) {
      if (Group* group = find(offset_key->group)) group->offsets.erase(tp);
      return;
    }
    auto offset = decode_offset(*value_bytes);
    if (!offset) return damaged(offset.error());
    find_or_add(offset_key->group).offsets.insert_or_assign(tp, *std::move(offset));
  } else if (const auto* group_key = std::get_if<protocol::GroupMetadataKey>(&*key)) {
    if (!value_bytes) {
      Group* group = find(group_key->group);
      if (group == nullptr) return;
      group->load({});
      group->stored.reset();
      return forget_if_unused(group_key->group);
    }
    auto value = protocol::decode_versioned<protocol::GroupMetadataValue>(*value_bytes);
    if (!value) return damaged(value.error());
    Group& group = find_or_add(group_key->group);
    group.stored = to_buffer(*value_bytes);
    if (loading_) return group.load(*value);
    // Our own decision: members are in memory already; what it decides is that everybody has an assignment now.
    group.state_since = stored_time(value->current_state_timestamp);
    if (group.state != GroupState::kCompletingRebalance || value->generation != group.generation) return;
    for (auto& stored : value->members) {
      if (Member* member = group.member(stored.member_id)) member->assignment = std::move(stored.assignment);
    }
    group.state = GroupState::kStable;
  } else {
    foreign_.insert(partition);
  }
}

std::optional<std::vector<GroupRecord>> GroupCoordinator::live_records(PartitionId partition) const {
  if (foreign_.contains(partition)) return std::nullopt;
  std::vector<GroupRecord> records;
  for (const auto& [id, group] : groups_) {
    if (host_.partition_of(id) != partition) continue;
    if (group.stored) records.push_back(group_record(id, *group.stored));
    for (const auto& [tp, offset] : group.offsets) records.push_back(offset_record(id, tp, offset));
  }
  return records;
}

void GroupCoordinator::loaded(Now now) {
  loading_ = false;
  // The broker may have died between deleting a topic and dropping what groups had committed for it.
  std::set<std::string> gone;
  for (const auto& [id, group] : groups_) {
    for (const auto& [tp, offset] : group.offsets) {
      if (!host_.has(tp)) gone.insert(tp.topic);
    }
  }
  for (const std::string& topic : gone) topic_deleted(topic);

  schedule_expiry(now);
  for (auto it = groups_.begin(); it != groups_.end();) {
    Group& group = (it++)->second;
    for (const auto& [id, m] : group.members()) {
      Member& member = *group.member(id);
      alive(now, group, member, member.session_timeout);
    }
    if (group.members().size() > static_cast<std::size_t>(config_.group_max_size)) prepare_rebalance(now, group);
    forget_if_unused(group.id());
  }
}

// ---- DescribeGroups, ListGroups ------------------------------------------------------------------------------------

void GroupCoordinator::describe(const Request& request) {
  const auto& message = request.as<protocol::DescribeGroupsRequest>();
  protocol::DescribeGroupsResponse response;
  std::set<std::string_view> named;
  for (const std::string& id : message.groups) {
    if (!named.insert(id).second) continue;  // a short request must not ask for one group a thousand times
    auto& described = response.groups.emplace_back();
    described.group_id = id;
    const Group* group = find(id);
    if (group == nullptr) {
      described.group_state = name(GroupState::kDead);
      if (request.version >= 6) {
        described.error_code = ErrorCode::kGroupIdNotFound;
        described.error_message = fmt::format("Group {} not found.", id);
      }
      continue;
    }
    if (message.include_authorized_operations) described.authorized_operations = kEveryGroupOperation;
    described.group_state = name(group->state);
    described.protocol_type = group->protocol_type.value_or("");
    const bool stable = group->state == GroupState::kStable;
    if (stable) described.protocol_data = group->protocol_name.value_or("");
    for (const auto& [member_id, member] : group->members()) {
      auto& m = described.members.emplace_back();
      m.member_id = member_id;
      m.group_instance_id = member.instance_id;
      m.client_id = member.client_id;
      m.client_host = member.client_host;
      // Between generations nothing is settled: neither the protocol nor who has what.
      if (stable) {
        m.member_metadata = to_buffer(member.metadata(described.protocol_data));
        m.member_assignment = member.assignment;
      }
    }
  }
  host_.reply(request.id, respond(std::move(response)));
}

void GroupCoordinator::list(const Request& request) {
  const auto& message = request.as<protocol::ListGroupsRequest>();
  protocol::ListGroupsResponse response;
  for (const auto& [id, group] : groups_) {
    if (!passes(message.states_filter, name(group.state)) || !passes(message.types_filter, "classic")) continue;
    response.groups.push_back({id, group.protocol_type.value_or(""), std::string(name(group.state)), "classic"});
  }
  host_.reply(request.id, respond(std::move(response)));
}

// ---- Placement -----------------------------------------------------------------------------------------------------

std::int32_t java_hash(std::string_view utf8) {
  std::uint32_t hash = 0;
  const auto unit = [&](std::uint32_t u) { hash = hash * 31 + u; };
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    std::uint32_t point = length == 1 ? lead : lead & (0xff >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < utf8.size(); ++k) {
      point = point << 6 | (static_cast<unsigned char>(utf8[i + k]) & 0x3f);
    }
    i += length;
    if (point < 0x10000) {
      unit(point);
    } else {  // a surrogate pair in Java's UTF-16
      unit(0xd800 + ((point - 0x10000) >> 10));
      unit(0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  return static_cast<std::int32_t>(hash);
}

PartitionId partition_of_group(std::string_view group_id, std::int32_t partitions) {
  // The smallest number has no positive counterpart: Kafka takes 0 for it.
  const std::int64_t hash = java_hash(group_id);
  return PartitionId(hash == INT32_MIN ? 0 : static_cast<std::int32_t>(std::abs(hash) % partitions));
}

}  // namespace weir::broker
