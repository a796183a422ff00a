#include "guard/lag_monitor.h"

#include <algorithm>
#include <set>

namespace weir::guard {

std::shared_ptr<const LagSnapshot> LagMonitor::update(MonoTime began, Now now, const ClusterSample& sample) {
  LagSnapshot snapshot;
  snapshot.clamped = last_->clamped;
  snapshot.errors = sample.errors;
  snapshot.complete = sample.groups_complete;
  for (const auto& [partition, ends] : sample.ends) {
    if (ends) history_.try_emplace(partition).first->second.sample(now.mono, ends->end);
  }
  const auto keep_stale = [&](const std::string& name, const std::string& why) {
    const auto before = last_->groups.find(name);
    GroupLag lag = before == last_->groups.end() ? GroupLag{.state = "Unknown"} : before->second;
    lag.stale = true;
    lag.error = why;
    snapshot.groups.insert_or_assign(name, std::move(lag));
  };
  for (const auto& [name, group] : sample.groups) {
    if (group) {
      GroupLag lag = measure(name, *group, sample, now);
      for (const auto& p : lag.partitions) snapshot.clamped += p.state == LagState::kBeyondEnd ? 1 : 0;
      snapshot.groups.insert_or_assign(name, std::move(lag));
    } else if (group.error().kind != ErrorKind::kNotFound) {
      keep_stale(name, group.error().message);
    }
  }
  if (!sample.groups_complete) {
    for (const auto& [name, lag] : last_->groups) {
      if (!snapshot.groups.contains(name)) keep_stale(name, "the broker that knows it did not answer");
    }
  }
  forget_missing(sample, snapshot);
  return publish(std::move(snapshot), began, now);
}

std::shared_ptr<const LagSnapshot> LagMonitor::update_failed(MonoTime began, Now now, const Error& why) {
  LagSnapshot snapshot;
  snapshot.clamped = last_->clamped;
  snapshot.errors = {why.message};
  snapshot.groups = last_->groups;
  for (auto& [name, group] : snapshot.groups) {
    group.stale = true;
    group.error = why.message;
  }
  return publish(std::move(snapshot), began, now);
}

std::shared_ptr<const LagSnapshot> LagMonitor::publish(LagSnapshot snapshot, MonoTime began, Now now) {
  snapshot.number = last_->number + 1;
  snapshot.taken = now.mono;
  snapshot.taken_wall = now.wall;
  snapshot.took = now.mono - began;
  snapshot.last_complete = snapshot.errors.empty() ? std::optional(now.mono) : last_->last_complete;
  last_ = std::make_shared<const LagSnapshot>(std::move(snapshot));
  return last_;
}

GroupLag LagMonitor::measure(const std::string& name, const ClusterSample::Group& group, const ClusterSample& sample,
                             Now now) {
  GroupLag lag;
  lag.state = group.facts.state.empty() ? "Unknown" : group.facts.state;
  lag.members = group.facts.members;
  lag.measured = now.mono;

  std::set<std::string> topics;
  std::set<std::string> read;
  for (const auto& [partition, offset] : group.committed) topics.insert(partition.topic);
  if (group.facts.assigned) {
    for (const auto& partition : *group.facts.assigned) read.insert(partition.topic);
  }
  topics.insert(read.begin(), read.end());
  // Only a settled group tells which topics it no longer reads; while it is empty or rebalancing everything counts.
  const bool settled = group.facts.state == "Stable" && !read.empty();

  bool all_timed = true;
  for (const auto& topic : topics) {
    std::vector<PartitionId> partitions;
    if (const auto known = sample.topics.find(topic); known != sample.topics.end()) {
      partitions = known->second;
    } else if (sample.topics_complete) {
      continue;  // Deleted: what is committed for it means nothing any more.
    } else {
      for (const auto& [partition, offset] : group.committed) {
        if (partition.topic == topic) partitions.push_back(partition.partition);
      }
    }
    for (const auto id : partitions) {
      const TopicPartition partition{topic, id};
      const auto found = sample.ends.find(partition);
      const Result<LogEnds>* ends = found == sample.ends.end() ? nullptr : &found->second;
      if (ends != nullptr && !*ends && ends->error().kind == ErrorKind::kNotFound) continue;
      PartitionLag p = measure(name, group, partition, ends, now);
      p.assigned = !settled || read.contains(topic);
      if (p.assigned) {
        if (p.records) lag.records = lag.records.value_or(0) + *p.records;
        if (p.time) lag.time = std::max(lag.time.value_or(Duration{}), *p.time);
        all_timed = all_timed && (p.time || p.records == 0);
        if (p.state == LagState::kUncommitted && !p.records) ++lag.uncommitted;
        if (p.state == LagState::kUnknown) ++lag.unmeasured;
      }
      lag.partitions.push_back(std::move(p));
    }
  }
  lag.known_time = lag.time;
  if (!all_timed) lag.time.reset();
  if (lag.partitions.empty()) lag.records = 0;
  measure_rates(name, lag, now);
  return lag;
}

PartitionLag LagMonitor::measure(const std::string& name, const ClusterSample::Group& group,
                                 const TopicPartition& partition, const Result<LogEnds>* ends, Now now) {
  PartitionLag lag{.partition = partition};
  if (const auto commit = group.committed.find(partition); commit != group.committed.end())
    lag.committed = commit->second;
  if (ends == nullptr || !*ends) return lag;
  lag.start = (*ends)->start;
  lag.end = (*ends)->end;
  const std::int64_t stored = *lag.end - *lag.start;

  if (!lag.committed) {
    lag.state = LagState::kUncommitted;
    const bool earliest = settings_.earliest_groups.contains(name);
    const MissingCommit missing = earliest ? MissingCommit::kEarliest : settings_.missing_commit;
    if (stored == 0 || missing == MissingCommit::kLatest) lag.records = 0;
    if (missing == MissingCommit::kEarliest) {
      lag.records = stored;
      measure_time(lag, *lag.start, now);
    }
    return lag;
  }
  lag.lost = std::max<std::int64_t>(*lag.start - *lag.committed, 0);
  lag.records = std::clamp<std::int64_t>(*lag.end - *lag.committed, 0, stored);
  measure_time(lag, *lag.committed, now);

  Moved& moved = moved_[name].try_emplace(partition, *lag.committed, now.mono).first->second;
  if (moved.committed != *lag.committed || *lag.records == 0) moved = {*lag.committed, now.mono};
  const bool nobody = group.facts.members == 0u;
  const bool stopped = *lag.records > 0 && (nobody || now.mono - moved.since >= settings_.stopped_after);
  if (*lag.committed > *lag.end) {
    lag.state = LagState::kBeyondEnd;
  } else if (stopped) {
    lag.state = LagState::kStopped;
  } else {
    lag.state = lag.lost > 0 ? LagState::kExpired : LagState::kOk;
  }
  return lag;
}

void LagMonitor::measure_time(PartitionLag& lag, Offset position, Now now) const {
  const auto history = history_.find(lag.partition);
  if (history == history_.end()) return;
  const auto time = history->second.of(now.mono, position);
  // One look at the end of a log says nothing yet about how long ago it was elsewhere.
  if (!time || (!time->exact && history->second.samples() < 2)) return;
  lag.time = time->time;
  lag.time_exact = time->exact;
}

void LagMonitor::measure_rates(const std::string& name, GroupLag& lag, Now now) {
  Totals totals{.at = now.mono};
  for (const auto& p : lag.partitions) {
    if (!p.committed || !p.end || !p.assigned) continue;
    totals.committed += p.committed->value;
    totals.end += p.end->value;
    ++totals.partitions;
  }
  const auto before = totals_.find(name);
  if (before != totals_.end() && before->second.partitions == totals.partitions && now.mono > before->second.at) {
    const double seconds = to_seconds(now.mono - before->second.at);
    const auto rate = [&](std::int64_t then, std::int64_t current) {
      return std::max(0.0, static_cast<double>(current - then) / seconds);
    };
    lag.consumed_per_s = rate(before->second.committed, totals.committed);
    lag.produced_per_s = rate(before->second.end, totals.end);
  }
  totals_.insert_or_assign(name, totals);
}

void LagMonitor::forget_missing(const ClusterSample& sample, const LagSnapshot& snapshot) {
  const auto group_gone = [&](const auto& entry) { return !snapshot.groups.contains(entry.first); };
  std::erase_if(moved_, group_gone);
  std::erase_if(totals_, group_gone);
  for (auto& [name, partitions] : moved_) {
    const auto group = sample.groups.find(name);
    if (group == sample.groups.end() || !group->second) continue;
    std::erase_if(partitions, [&](const auto& entry) { return !group->second->committed.contains(entry.first); });
  }
  if (!sample.topics_complete || !sample.groups_complete) return;
  std::set<TopicPartition> needed;  // by a group, or watched
  for (const auto& [partition, ends] : sample.ends) needed.insert(partition);
  for (const auto& [name, lag] : snapshot.groups) {
    for (const auto& p : lag.partitions) needed.insert(p.partition);
  }
  std::erase_if(history_, [&](const auto& entry) { return !needed.contains(entry.first); });
}

}  // namespace weir::guard
