// Committed offsets: commit, fetch, expire.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "broker/group/coordinator.h"
#include "broker/group/records.h"
#include "protocol/messages/8_offset_commit.h"
#include "protocol/messages/9_offset_fetch.h"

namespace weir::broker {

using protocol::ErrorCode;
using protocol::OffsetCommitRequest;
using protocol::OffsetCommitResponse;
using protocol::OffsetFetchRequest;
using protocol::OffsetFetchResponse;
using std::chrono::milliseconds;

namespace {

// The same error for every partition asked for.
Response refuse_commit(const Request& request, ErrorCode error) {
  OffsetCommitResponse response;
  for (const auto& topic : request.as<OffsetCommitRequest>().topics) {
    auto& answered = response.topics.emplace_back();
    answered.name = topic.name;
    for (const auto& p : topic.partitions) answered.partitions.push_back({p.partition_index, error});
  }
  return respond(std::move(response));
}

Response refuse_fetch(const Request& request, ErrorCode error) {
  OffsetFetchResponse response{.error_code = error};
  for (const auto& asked : request.as<OffsetFetchRequest>().groups) {
    response.groups.push_back({asked.group_id, {}, error});
  }
  return respond(std::move(response));
}

ErrorCode check_commit(const Group* group, const OffsetCommitRequest& message) {
  const bool by_member =
      message.generation_id_or_member_epoch >= 0 || !message.member_id.empty() || message.group_instance_id.has_value();
  if (group == nullptr) {
    // A consumer that assigns partitions to itself, or an administrator.
    return message.generation_id_or_member_epoch < 0 ? ErrorCode::kNone : ErrorCode::kIllegalGeneration;
  }
  if (message.generation_id_or_member_epoch < 0 && group->state == GroupState::kEmpty) return ErrorCode::kNone;
  // Without a member's name only an empty group takes offsets: members would be overruled.
  if (!by_member) return ErrorCode::kUnknownMemberId;
  if (message.group_instance_id) {
    const std::string* holder = group->static_member(*message.group_instance_id);
    if (holder == nullptr) return ErrorCode::kUnknownMemberId;
    if (*holder != message.member_id) return ErrorCode::kFencedInstanceId;
  }
  if (group->member(message.member_id) == nullptr) return ErrorCode::kUnknownMemberId;
  if (message.generation_id_or_member_epoch != group->generation) return ErrorCode::kIllegalGeneration;
  // It knows the new generation but has no assignment in it yet.
  return group->state == GroupState::kCompletingRebalance ? ErrorCode::kRebalanceInProgress : ErrorCode::kNone;
}

// The two forms of the request differ in the names of their types only.
template <typename AnsweredTopic, typename AskedTopics>
std::vector<AnsweredTopic> committed(const Group* group, const std::optional<AskedTopics>& asked) {
  std::vector<AnsweredTopic> topics;
  const auto add = [&](AnsweredTopic& topic, std::int32_t partition, const CommittedOffset* offset) {
    auto& p = topic.partitions.emplace_back();
    p.partition_index = partition;
    p.committed_offset = offset == nullptr ? kNoOffset.value : offset->offset.value;
    p.committed_leader_epoch = offset == nullptr ? -1 : offset->leader_epoch;
    p.metadata = offset == nullptr ? "" : offset->metadata;
  };
  if (!asked) {  // everything there is
    if (group == nullptr) return topics;
    for (const auto& [tp, offset] : group->offsets) {
      if (topics.empty() || topics.back().name != tp.topic) topics.emplace_back().name = tp.topic;
      add(topics.back(), tp.partition.value, &offset);
    }
    return topics;
  }
  for (const auto& topic : *asked) {
    auto& answered = topics.emplace_back();
    answered.name = topic.name;
    for (const std::int32_t partition : topic.partition_indexes) {
      const CommittedOffset* offset = nullptr;
      if (group != nullptr) {
        auto it = group->offsets.find({topic.name, PartitionId(partition)});
        if (it != group->offsets.end()) offset = &it->second;
      }
      add(answered, partition, offset);
    }
  }
  return topics;
}

}  // namespace

void GroupCoordinator::commit_offsets(Now now, const Request& request) {
  const auto& message = request.as<OffsetCommitRequest>();
  Group* group = find(message.group_id);
  if (const ErrorCode error = check_commit(group, message); error != ErrorCode::kNone) {
    return host_.reply(request.id, refuse_commit(request, error));
  }
  if (group != nullptr) {
    // A commit is a sign of life, as in Kafka.
    if (Member* member = group->member(message.member_id)) alive(now, *group, *member, member->session_timeout);
  }

  CommittedOffset offset{.committed = from_unix_ms(to_unix_ms(now.wall))};
  if (message.retention_time_ms >= 0) {
    constexpr std::int64_t kHundredYears = 100LL * 365 * 24 * 3600 * 1000;
    const std::int64_t retention = std::min(message.retention_time_ms, kHundredYears);
    offset.expires = stored_time(to_unix_ms(now.wall) + retention);
  }
  std::vector<GroupRecord> records;
  OffsetCommitResponse response;
  for (const auto& topic : message.topics) {
    auto& answered = response.topics.emplace_back();
    answered.name = topic.name;
    for (const auto& p : topic.partitions) {
      const TopicPartition tp{topic.name, PartitionId(p.partition_index)};
      ErrorCode error = ErrorCode::kNone;
      offset.offset = Offset(p.committed_offset);
      offset.leader_epoch = p.committed_leader_epoch;
      offset.metadata = p.committed_metadata.value_or("");
      if (!host_.has(tp)) {
        error = ErrorCode::kUnknownTopicOrPartition;
      } else if (offset.metadata.size() > static_cast<std::size_t>(config_.offset_metadata_max_bytes)) {
        error = ErrorCode::kOffsetMetadataTooLarge;
      } else {
        records.push_back(offset_record(message.group_id, tp, offset));
      }
      answered.partitions.push_back({p.partition_index, error});
    }
  }
  if (records.empty()) return host_.reply(request.id, respond(std::move(response)));
  host_.commit({host_.partition_of(message.group_id),
                std::move(records),
                {{request.id, respond(std::move(response)), refuse_commit}}});
}

void GroupCoordinator::fetch_offsets(const Request& request) {
  const auto& message = request.as<OffsetFetchRequest>();
  OffsetFetchResponse response;
  std::set<PartitionId> partitions;
  // Until version 7 a request asks for one group.
  if (request.version < 8) {
    partitions.insert(host_.partition_of(message.group_id));
    response.topics = committed<OffsetFetchResponse::OffsetFetchResponseTopic>(find(message.group_id), message.topics);
  } else {
    std::set<std::string_view> named;
    for (const auto& asked : message.groups) {
      if (!named.insert(asked.group_id).second) continue;  // all that a group has committed, once
      auto topics = committed<OffsetFetchResponse::OffsetFetchResponseTopics>(find(asked.group_id), asked.topics);
      response.groups.push_back({asked.group_id, std::move(topics), ErrorCode::kNone});
      partitions.insert(host_.partition_of(asked.group_id));
    }
  }
  if (partitions.empty()) return host_.reply(request.id, respond(std::move(response)));
  // Answered when what it shows is durable: a crash must not take back what a client has seen.
  host_.commit({*partitions.begin(),
                {},
                {{request.id, respond(std::move(response)), refuse_fetch}},
                {std::next(partitions.begin()), partitions.end()}});
}

void GroupCoordinator::topic_deleted(std::string_view topic) {
  std::vector<std::string> touched;
  for (const auto& [id, group] : groups_) {
    std::vector<GroupRecord> records;
    for (const auto& [tp, offset] : group.offsets) {
      if (tp.topic == topic) records.push_back(offset_tombstone(id, tp));
    }
    if (records.empty()) continue;
    touched.push_back(id);
    commit(group, std::move(records), {});
  }
  for (const std::string& id : touched) forget_if_unused(id);
}

void GroupCoordinator::schedule_expiry(Now now) {
  constexpr std::int64_t kDay = std::int64_t{24} * 3600 * 1000;
  next_expiry_check_ = now.mono + milliseconds(std::min(config_.offsets_retention_check_interval_ms, kDay));
}

// Kafka's rules (KIP-211): an empty group keeps its offsets for the retention time after its last member left; one that
// never had members, after each commit; a Stable one loses only offsets of topics it no longer reads.
void GroupCoordinator::expire_offsets(Now now) {
  schedule_expiry(now);
  // Compared in minutes: the longest setting does not fit into nanoseconds.
  const std::chrono::minutes retention(config_.offsets_retention_minutes);
  std::vector<std::string> ids;
  for (const auto& [id, group] : groups_) ids.push_back(id);

  for (const std::string& id : ids) {
    Group& group = *find(id);
    const bool had_members = group.protocol_type.has_value();
    std::optional<std::set<std::string>> subscribed;
    if (had_members && group.state != GroupState::kEmpty) {
      if (group.state != GroupState::kStable) continue;
      subscribed = group.subscribed_topics();
      if (!subscribed) continue;
    }
    std::vector<GroupRecord> records;
    for (const auto& [tp, offset] : group.offsets) {
      if (subscribed && subscribed->contains(tp.topic)) continue;
      WallTime since = offset.committed;
      if (had_members && !subscribed && group.state_since) since = *group.state_since;
      const bool over = offset.expires ? now.wall >= *offset.expires
                                       : std::chrono::floor<std::chrono::minutes>(now.wall - since) >= retention;
      if (over) records.push_back(offset_tombstone(id, tp));
    }
    const bool nothing_left =
        group.state == GroupState::kEmpty && group.pending.empty() && records.size() == group.offsets.size();
    if (nothing_left && group.stored) records.push_back(group_tombstone(id));
    if (!records.empty()) commit(group, std::move(records), {});
    forget_if_unused(id);
  }
}

}  // namespace weir::broker
