// A cluster made of plain maps, for tests: what answers, what hangs, what is missing is set by hand.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "guard/cluster_source.h"

namespace weir::guard {

/// One group's facts and commits.
struct FakeGroup {
  GroupFacts facts{"Stable", 1, std::nullopt};
  client::Committed committed;
  std::string coordinator = "c1";
};

/// Any thread, under `mutex` while a guard runs on it.
class FakeSource final : public ClusterSource {
 public:
  std::mutex mutex;
  std::map<std::string, FakeGroup> all;
  std::map<TopicPartition, LogEnds> logs;
  std::set<std::string> hung;         // Coordinators that never answer: their groups end in kTimeout.
  std::set<std::string> hung_topics;  // Topics whose leaders never answer.
  bool down = false;
  int coordinator_requests = 0;
  std::function<void()> after_commits;  // What happens in the cluster between the two reads.

  Result<Groups> groups() override {
    std::lock_guard lock(mutex);
    if (down) return fail(ErrorKind::kUnavailable, "127.0.0.1:9092: connection refused");
    Groups groups;
    for (const auto& [name, group] : all) groups.groups[name] = {name, "consumer", group.facts.state, "classic"};
    return groups;
  }
  std::map<std::string, Result<GroupFacts>> facts(const std::vector<client::GroupListing>& listings) override {
    std::lock_guard lock(mutex);
    std::map<std::string, Result<GroupFacts>> out;
    for (const auto& l : listings) out.insert_or_assign(l.group, all.at(l.group).facts);
    return out;
  }
  std::map<std::string, Result<client::Committed>> committed(const std::vector<std::string>& names) override {
    std::map<std::string, Result<client::Committed>> out;
    {
      std::lock_guard lock(mutex);
      std::set<std::string> asked;
      for (const auto& name : names) {
        const FakeGroup& group = all.at(name);
        asked.insert(group.coordinator);
        if (hung.contains(group.coordinator)) {
          out.insert_or_assign(name, fail(ErrorKind::kTimeout, group.coordinator + ": no answer in time"));
        } else {
          out.insert_or_assign(name, group.committed);
        }
      }
      coordinator_requests += static_cast<int>(asked.size());
    }
    if (after_commits) after_commits();
    return out;
  }
  Result<std::map<std::string, std::vector<PartitionId>>> partitions(const std::vector<std::string>& topics) override {
    std::lock_guard lock(mutex);
    std::map<std::string, std::vector<PartitionId>> out;
    const std::set<std::string> wanted(topics.begin(), topics.end());
    for (const auto& [p, ends] : logs) {
      if (wanted.contains(p.topic)) out[p.topic].push_back(p.partition);
    }
    return out;
  }
  std::map<TopicPartition, Result<LogEnds>> ends(const std::vector<TopicPartition>& partitions) override {
    std::lock_guard lock(mutex);
    std::map<TopicPartition, Result<LogEnds>> out;
    for (const auto& p : partitions) {
      if (hung_topics.contains(p.topic)) {
        out.insert_or_assign(p, fail(ErrorKind::kTimeout, "b2: no answer in time"));
      } else {
        out.insert_or_assign(p, logs.at(p));
      }
    }
    return out;
  }

  void log(const std::string& topic, int partition, std::int64_t start, std::int64_t end) {
    logs[{topic, PartitionId(partition)}] = {Offset(start), Offset(end)};
  }
  void commit(const std::string& group, const std::string& topic, int partition, std::int64_t offset) {
    all[group].committed[{topic, PartitionId(partition)}] = Offset(offset);
  }
  void members(const std::string& group, std::size_t count, std::vector<TopicPartition> assigned = {}) {
    all[group].facts = {count == 0 ? "Empty" : "Stable", count, std::move(assigned)};
  }
};

}  // namespace weir::guard
