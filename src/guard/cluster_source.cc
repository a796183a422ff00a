#include "guard/cluster_source.h"

#include <set>

namespace weir::guard {
namespace {

class KafkaSource final : public ClusterSource {
 public:
  explicit KafkaSource(client::AdminSettings settings) : admin_(std::move(settings)) {}

  Result<Groups> groups() override {
    auto listed = admin_.list_groups();
    if (!listed) return tl::unexpected(listed.error());
    Groups groups;
    groups.failed = std::move(listed->failed);
    for (auto& group : listed->groups) groups.groups.emplace(group.group, group);
    return groups;
  }

  std::map<std::string, Result<GroupFacts>> facts(const std::vector<client::GroupListing>& groups) override {
    std::map<std::string, Result<GroupFacts>> facts;
    std::vector<std::string> classic;
    for (const auto& group : groups) {
      if (group.type.empty() || group.type == "classic") {
        classic.push_back(group.group);
      } else {  // The newer kinds are not described by DescribeGroups; the list tells their state.
        facts.insert_or_assign(group.group, GroupFacts{group.state, std::nullopt, std::nullopt});
      }
    }
    for (auto& [name, description] : admin_.describe_groups(classic)) {
      if (!description) {
        facts.insert_or_assign(name, tl::unexpected(description.error()));
        continue;
      }
      GroupFacts fact{description->state, description->members.size(), std::nullopt};
      if (description->protocol_type == "consumer" || description->protocol_type.empty()) {
        fact.assigned.emplace();
        for (const auto& member : description->members) {
          fact.assigned->insert(fact.assigned->end(), member.assigned.begin(), member.assigned.end());
        }
      }
      facts.insert_or_assign(name, std::move(fact));
    }
    return facts;
  }

  std::map<std::string, Result<client::Committed>> committed(const std::vector<std::string>& groups) override {
    return admin_.committed(groups);
  }

  Result<std::map<std::string, std::vector<PartitionId>>> partitions(const std::vector<std::string>& topics) override {
    std::map<std::string, std::vector<PartitionId>> partitions;
    if (topics.empty()) return partitions;
    auto described = admin_.topics(topics);
    if (!described) return tl::unexpected(described.error());
    for (const auto& topic : *described) {
      for (const auto& partition : topic.partitions) partitions[topic.name].push_back(partition.id);
    }
    return partitions;
  }

  std::map<TopicPartition, Result<LogEnds>> ends(const std::vector<TopicPartition>& partitions) override {
    const auto starts = admin_.list_offsets(partitions, client::OffsetSpec::kEarliest);
    std::map<TopicPartition, Result<LogEnds>> ends;
    for (const auto& [partition, end] : admin_.list_offsets(partitions, client::OffsetSpec::kLatest)) {
      const auto& start = starts.at(partition);
      if (start && end) {
        ends.insert_or_assign(partition, LogEnds{*start, *end});
      } else {
        ends.insert_or_assign(partition, tl::unexpected(end ? start.error() : end.error()));
      }
    }
    return ends;
  }

  void interrupt() override { admin_.interrupt(); }

 private:
  client::Admin admin_;
};

}  // namespace

std::unique_ptr<ClusterSource> kafka_source(client::AdminSettings settings) {
  return std::make_unique<KafkaSource>(std::move(settings));
}

Result<ClusterSample> take_sample(ClusterSource& source, const std::vector<std::string>& only,
                                  const std::vector<std::string>& watched) {
  ClusterSample sample;
  auto listed = source.groups();
  if (!listed) return tl::unexpected(listed.error());
  for (const auto& error : listed->failed) sample.errors.push_back(error.message);
  sample.groups_complete = listed->failed.empty();

  std::vector<client::GroupListing> listings;
  std::vector<std::string> names;
  for (const auto& [name, group] : listed->groups) {
    const bool consumers = group.protocol_type.empty() || group.protocol_type == "consumer";
    if (only.empty() ? !consumers : std::find(only.begin(), only.end(), name) == only.end()) continue;
    listings.push_back(group);
    names.push_back(name);
  }
  if (names.empty() && watched.empty()) return sample;

  auto facts = source.facts(listings);
  auto commits = source.committed(names);  // Before the ends: a group that moves meanwhile is then never ahead of them.
  std::set<std::string> topics(watched.begin(), watched.end());
  for (const auto& name : names) {
    const auto fact = facts.find(name);
    const auto commit = commits.find(name);
    if (fact == facts.end() || commit == commits.end()) continue;
    if (!fact->second || !commit->second) {
      const Error& why = fact->second ? commit->second.error() : fact->second.error();
      if (why.kind != ErrorKind::kNotFound) sample.errors.push_back(why.message);
      sample.groups.insert_or_assign(name, tl::unexpected(why));
      continue;
    }
    ClusterSample::Group group{std::move(*fact->second), std::move(*commit->second)};
    for (const auto& [partition, offset] : group.committed) topics.insert(partition.topic);
    if (group.facts.assigned) {
      for (const auto& partition : *group.facts.assigned) topics.insert(partition.topic);
    }
    sample.groups.insert_or_assign(name, std::move(group));
  }

  auto partitions = source.partitions({topics.begin(), topics.end()});
  if (!partitions) {
    sample.topics_complete = false;
    sample.errors.push_back(partitions.error().message);
    return sample;
  }
  sample.topics = std::move(*partitions);
  std::vector<TopicPartition> wanted;
  for (const auto& [topic, ids] : sample.topics) {
    for (const auto id : ids) wanted.push_back({topic, id});
  }
  if (wanted.empty()) return sample;
  sample.ends = source.ends(wanted);
  std::set<std::string> said;  // One hung leader answers for thousands of partitions with one line.
  for (const auto& [partition, ends] : sample.ends) {
    if (!ends && ends.error().kind != ErrorKind::kNotFound && said.insert(ends.error().message).second) {
      sample.errors.push_back(ends.error().message);
    }
  }
  return sample;
}

}  // namespace weir::guard
