#include "client/admin.h"

#include <fmt/format.h>

#include "client/admin_state.h"
#include "protocol/messages/15_describe_groups.h"
#include "protocol/messages/16_list_groups.h"
#include "protocol/messages/19_create_topics.h"
#include "protocol/messages/2_list_offsets.h"
#include "protocol/messages/32_describe_configs.h"
#include "protocol/messages/48_describe_client_quotas.h"
#include "protocol/messages/49_alter_client_quotas.h"
#include "protocol/messages/9_offset_fetch.h"
#include "protocol/records/consumer_protocol.h"

namespace weir::client {

using protocol::ApiKey;
using protocol::ErrorCode;

namespace {

constexpr std::int8_t kTopicResource = 2;
constexpr std::int8_t kBrokerResource = 4;
constexpr std::int8_t kMatchExact = 0;
constexpr std::int8_t kMatchDefault = 1;
constexpr std::int8_t kDefaultConfigSource = 5;

std::optional<std::string> quota_name(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(name);
}

GroupDescription describe(const protocol::DescribeGroupsResponse::DescribedGroup& group) {
  GroupDescription description{group.group_state, group.protocol_type, group.protocol_data, {}};
  for (const auto& member : group.members) {
    GroupMember m{member.member_id, member.group_instance_id.value_or(""), member.client_id, member.client_host, {}};
    if (group.protocol_type == "consumer" && !member.member_assignment.empty()) {
      // What members say to each other is their own affair: what does not parse is left out.
      const auto assignment =
          protocol::decode_versioned<protocol::ConsumerProtocolAssignment>(member.member_assignment, true);
      if (assignment) {
        for (const auto& topic : assignment->assigned_partitions) {
          for (const auto partition : topic.partitions) m.assigned.push_back({topic.topic, PartitionId(partition)});
        }
      }
    }
    description.members.push_back(std::move(m));
  }
  return description;
}

template <typename Topics>
Result<Committed> read_commits(const Topics& topics, const std::string& address) {
  Committed committed;
  for (const auto& topic : topics) {
    for (const auto& partition : topic.partitions) {
      if (partition.error_code == ErrorCode::kUnknownTopicOrPartition) continue;
      if (partition.error_code != ErrorCode::kNone) {
        return tl::unexpected(refused(address, ApiKey::kOffsetFetch, partition.error_code));
      }
      if (partition.committed_offset < 0) continue;
      committed[{topic.name, PartitionId(partition.partition_index)}] = Offset(partition.committed_offset);
    }
  }
  return committed;
}

}  // namespace

Admin::Admin(AdminSettings settings) : state_(std::make_unique<State>(std::move(settings))) {}
Admin::~Admin() = default;

void Admin::set_timeout(Duration timeout) { state_->settings.timeout = timeout; }
void Admin::interrupt() { state_->interrupt(); }

Result<ClusterDescription> Admin::cluster() {
  return state_->refresh(State::Which::kNamed, {}, nullptr, state_->deadline());
}

Result<std::vector<TopicDescription>> Admin::topics(const std::vector<std::string>& names) {
  std::vector<TopicDescription> topics;
  const auto which = names.empty() ? State::Which::kAll : State::Which::kNamed;
  auto done = state_->refresh(which, names, &topics, state_->deadline());
  if (!done) return tl::unexpected(done.error());
  return topics;
}

Result<GroupListings> Admin::list_groups() {
  using Request = protocol::ListGroupsRequest;
  const MonoTime until = state_->deadline();
  auto cluster = state_->refresh(State::Which::kNamed, {}, nullptr, until);
  if (!cluster) return tl::unexpected(cluster.error());
  GroupListings listings;
  std::vector<std::pair<AdminLink*, int>> asked;
  for (const auto& broker : cluster->brokers) {
    auto link = state_->broker(broker.id.value, until);
    auto version = link ? (*link)->version<Request>() : Result<int>(tl::unexpected(link.error()));
    auto sent = version ? (*link)->send(Request{}, *version, until) : Result<void>(tl::unexpected(version.error()));
    if (sent) {
      asked.emplace_back(*link, *version);
    } else {
      listings.failed.push_back(sent.error());
    }
  }
  bool answered = false;
  for (const auto& [link, version] : asked) {
    auto response = link->receive<Request>(version, until);
    if (response && response->error_code != ErrorCode::kNone) {
      response = tl::unexpected(refused(link->address(), ApiKey::kListGroups, response->error_code));
    }
    if (!response) {
      listings.failed.push_back(response.error());
      continue;
    }
    answered = true;
    for (auto& group : response->groups) {
      listings.groups.push_back({std::move(group.group_id), std::move(group.protocol_type),
                                 std::move(group.group_state), std::move(group.group_type)});
    }
  }
  if (!answered && !listings.failed.empty()) return tl::unexpected(listings.failed.front());
  return listings;
}

std::map<std::string, Result<GroupDescription>> Admin::describe_groups(const std::vector<std::string>& groups) {
  using Request = protocol::DescribeGroupsRequest;
  return state_->ask_groups<GroupDescription, Request>(
      groups, protocol::kOpenEnd, 0,
      [](int, std::span<const std::string> names) { return Request{.groups = {names.begin(), names.end()}}; },
      [](const protocol::DescribeGroupsResponse& response, std::span<const std::string>, const std::string& address,
         auto& out) {
        for (const auto& group : response.groups) {
          const bool absent = group.group_state == "Dead" && group.members.empty();
          if (group.error_code != ErrorCode::kNone) {
            out.insert_or_assign(group.group_id, tl::unexpected(refused(address, ApiKey::kDescribeGroups,
                                                                        group.error_code, group.error_message)));
          } else if (absent) {
            out.insert_or_assign(group.group_id, fail(ErrorKind::kNotFound, "there is no group " + group.group_id));
          } else {
            out.insert_or_assign(group.group_id, describe(group));
          }
        }
      });
}

std::map<std::string, Result<Committed>> Admin::committed(const std::vector<std::string>& groups) {
  using Request = protocol::OffsetFetchRequest;
  // Version 10 names topics by id; 8 is the first that takes many groups.
  return state_->ask_groups<Committed, Request>(
      groups, 9, 8,
      [](int version, std::span<const std::string> names) {
        Request request;
        if (version < 8) request.group_id = names.front();
        for (const auto& name : names) request.groups.push_back({.group_id = name});
        return request;
      },
      [](const protocol::OffsetFetchResponse& response, std::span<const std::string> names, const std::string& address,
         auto& out) {
        const auto put = [&](const std::string& group, ErrorCode code, const auto& topics) {
          if (code == ErrorCode::kNone) return out.insert_or_assign(group, read_commits(topics, address));
          return out.insert_or_assign(group, tl::unexpected(refused(address, ApiKey::kOffsetFetch, code)));
        };
        if (response.groups.empty()) put(names.front(), response.error_code, response.topics);
        for (const auto& group : response.groups) put(group.group_id, group.error_code, group.topics);
      });
}

std::map<TopicPartition, Result<Offset>> Admin::list_offsets(const std::vector<TopicPartition>& partitions,
                                                             OffsetSpec spec) {
  using Request = protocol::ListOffsetsRequest;
  const MonoTime until = state_->deadline();
  std::map<TopicPartition, Result<Offset>> out;
  std::vector<TopicPartition> todo = partitions;
  while (true) {
    std::vector<std::string> unknown;
    for (const auto& partition : todo) {
      const auto leader = state_->leaders.find(partition);
      if ((leader == state_->leaders.end() || leader->second < 0) &&
          (unknown.empty() || unknown.back() != partition.topic)) {
        unknown.push_back(partition.topic);
      }
    }
    if (!unknown.empty()) {
      auto done = state_->refresh(State::Which::kNamed, unknown, nullptr, until);
      if (!done) {
        for (const auto& partition : todo) out.insert_or_assign(partition, tl::unexpected(done.error()));
        return out;
      }
    }
    std::map<int, std::map<std::string, std::vector<TopicPartition>>> by_leader;
    for (const auto& partition : todo) {
      const auto leader = state_->leaders.find(partition);
      const std::string name = fmt::format("{}/{}", partition.topic, partition.partition.value);
      if (leader == state_->leaders.end()) {
        out.insert_or_assign(partition, fail(ErrorKind::kNotFound, "there is no partition " + name));
      } else if (leader->second < 0) {
        out.insert_or_assign(partition, fail(ErrorKind::kUnavailable, name + " has no leader now"));
      } else {
        by_leader[leader->second][partition.topic].push_back(partition);
      }
    }
    struct Job {
      AdminLink* link;
      int version;
      int leader;
    };
    std::vector<Job> jobs;
    const auto give_up = [&](int leader, const Error& why) {
      for (const auto& [topic, list] : by_leader[leader]) {
        for (const auto& partition : list) out.insert_or_assign(partition, tl::unexpected(why));
      }
    };
    for (const auto& [leader, topics] : by_leader) {
      Request request{.replica_id = -1, .timeout_ms = static_cast<std::int32_t>(to_ms(state_->settings.timeout))};
      for (const auto& [topic, list] : topics) {
        auto& entry = request.topics.emplace_back();
        entry.name = topic;
        for (const auto& partition : list) {
          entry.partitions.push_back(
              {.partition_index = partition.partition.value, .timestamp = static_cast<std::int64_t>(spec)});
        }
      }
      auto link = state_->broker(leader, until);
      auto version = link ? (*link)->version<Request>() : Result<int>(tl::unexpected(link.error()));
      auto sent = version ? (*link)->send(request, *version, until) : Result<void>(tl::unexpected(version.error()));
      if (sent) {
        jobs.push_back({*link, *version, leader});
      } else {
        give_up(leader, sent.error());
      }
    }
    for (const Job& job : jobs) {
      const auto response = job.link->receive<Request>(job.version, until);
      give_up(job.leader,
              response ? Error{ErrorKind::kInvalid, job.link->address() + " left this partition out of its answer"}
                       : response.error());
      if (!response) continue;
      for (const auto& topic : response->topics) {
        for (const auto& p : topic.partitions) {
          const TopicPartition partition{topic.name, PartitionId(p.partition_index)};
          if (p.error_code == ErrorCode::kNone) {
            out.insert_or_assign(partition, Offset(p.offset));
          } else {
            out.insert_or_assign(partition,
                                 tl::unexpected(refused(job.link->address(), ApiKey::kListOffsets, p.error_code)));
          }
        }
      }
    }
    // A leader that moved, or a topic that was deleted: what is remembered is no longer true.
    std::vector<TopicPartition> again;
    for (const auto& partition : todo) {
      const auto& result = out.at(partition);
      if (result) continue;
      if (result.error().kind == ErrorKind::kNotFound) state_->leaders.erase(partition);
      if (result.error().kind != ErrorKind::kUnavailable) continue;
      const auto leader = state_->leaders.find(partition);
      if (leader == state_->leaders.end() || !state_->is_unreachable(leader->second)) again.push_back(partition);
      state_->leaders.erase(partition);
    }
    todo = std::move(again);
    if (todo.empty() || !state_->pause_before_retry(until)) return out;
  }
}

Result<std::vector<QuotaEntry>> Admin::quotas(const QuotaEntity& entity) {
  const MonoTime until = state_->deadline();
  protocol::DescribeClientQuotasRequest request{.strict = !entity.empty()};
  for (const auto& [type, name] : entity) {
    request.components.push_back({type, name.empty() ? kMatchDefault : kMatchExact, quota_name(name)});
  }
  auto link = state_->any(until);
  if (!link) return tl::unexpected(link.error());
  auto response = (*link)->ask(request, until);
  if (!response) return tl::unexpected(response.error());
  if (response->error_code != ErrorCode::kNone) {
    return tl::unexpected(
        refused((*link)->address(), ApiKey::kDescribeClientQuotas, response->error_code, response->error_message));
  }
  std::vector<QuotaEntry> entries;
  for (const auto& entry :
       response->entries.value_or(std::vector<protocol::DescribeClientQuotasResponse::EntryData>{})) {
    QuotaEntry& out = entries.emplace_back();
    for (const auto& part : entry.entity) out.entity[part.entity_type] = part.entity_name.value_or("");
    for (const auto& value : entry.values) out.values[value.key] = value.value;
  }
  return entries;
}

Result<void> Admin::alter_quotas(const QuotaEntity& entity, const QuotaChanges& changes) {
  protocol::AlterClientQuotasRequest request;
  auto& entry = request.entries.emplace_back();
  for (const auto& [type, name] : entity) entry.entity.push_back({type, quota_name(name)});
  for (const auto& [key, value] : changes) entry.ops.push_back({key, value.value_or(0), !value.has_value()});
  auto answer = state_->ask_controller(request, state_->deadline());
  if (!answer) return tl::unexpected(answer.error());
  for (const auto& result : answer->first.entries) {
    if (result.error_code != ErrorCode::kNone) {
      return tl::unexpected(
          refused(answer->second, ApiKey::kAlterClientQuotas, result.error_code, result.error_message));
    }
  }
  return {};
}

Result<void> Admin::create_topic(const NewTopic& topic) {
  const MonoTime until = state_->deadline();
  protocol::CreateTopicsRequest request{.timeout_ms = static_cast<std::int32_t>(to_ms(state_->settings.timeout))};
  auto& entry = request.topics.emplace_back();
  entry.name = topic.name;
  entry.num_partitions = topic.partitions;
  entry.replication_factor = topic.replication_factor;
  for (const auto& [name, value] : topic.configs) entry.configs.push_back({name, value});
  auto answer = state_->ask_controller(request, until);
  if (!answer) return tl::unexpected(answer.error());
  for (const auto& result : answer->first.topics) {
    if (result.error_code != ErrorCode::kNone) {
      return tl::unexpected(refused(answer->second, ApiKey::kCreateTopics, result.error_code, result.error_message));
    }
  }
  return {};
}

namespace {

Result<std::map<std::string, ConfigValue>> read_configs(AdminLink& link, std::int8_t type, const std::string& name,
                                                        MonoTime until) {
  protocol::DescribeConfigsRequest request;
  request.resources.push_back({type, name, std::nullopt});
  auto response = link.ask(request, until);
  if (!response) return tl::unexpected(response.error());
  std::map<std::string, ConfigValue> configs;
  for (const auto& result : response->results) {
    if (result.error_code != ErrorCode::kNone) {
      return tl::unexpected(refused(link.address(), ApiKey::kDescribeConfigs, result.error_code, result.error_message));
    }
    for (const auto& config : result.configs) {
      configs[config.name] = {config.value, config.config_source == kDefaultConfigSource, config.read_only};
    }
  }
  return configs;
}

}  // namespace

Result<std::map<std::string, ConfigValue>> Admin::topic_configs(const std::string& topic) {
  const MonoTime until = state_->deadline();
  auto link = state_->any(until);
  if (!link) return tl::unexpected(link.error());
  return read_configs(**link, kTopicResource, topic, until);
}

Result<std::map<std::string, ConfigValue>> Admin::broker_configs(NodeId broker) {
  const MonoTime until = state_->deadline();
  if (!state_->brokers.contains(broker.value)) {
    if (auto known = state_->refresh(State::Which::kNamed, {}, nullptr, until); !known)
      return tl::unexpected(known.error());
  }
  auto link = state_->broker(broker.value, until);
  if (!link) return tl::unexpected(link.error());
  return read_configs(**link, kBrokerResource, std::to_string(broker.value), until);
}

}  // namespace weir::client
