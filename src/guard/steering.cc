#include "guard/steering.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace weir::guard {
namespace {

/// What a group owes on one topic.
struct TopicLag {
  bool measured = true;
  std::optional<Duration> time;  // none while a partition with a commit has records and no time
  bool timed = true;
  std::map<PartitionId, Offset> committed;
  std::int64_t records = 0;
};

std::map<std::string, TopicLag> by_topic(const GroupLag& group) {
  std::map<std::string, TopicLag> topics;
  for (const auto& p : group.partitions) {
    if (!p.assigned) continue;
    TopicLag& topic = topics[p.partition.topic];
    if (group.stale || p.state == LagState::kUnknown) topic.measured = false;
    if (p.time) topic.time = std::max(topic.time.value_or(Duration{}), *p.time);
    // A partition without a commit has no number at all, and must not keep the others from being steered.
    if (p.committed && !p.time && p.records != 0) topic.timed = false;
    if (p.committed) topic.committed[p.partition.partition] = *p.committed;
    topic.records += p.records.value_or(0);
  }
  for (auto& [name, topic] : topics) {
    if (!topic.timed) topic.time.reset();
  }
  return topics;
}

}  // namespace

void Steering::update(Now now, const LagSnapshot& snapshot) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& name : settings_.groups) {
    const auto group = snapshot.groups.find(name);
    if (group == snapshot.groups.end()) continue;
    for (const auto& [topic, lag] : by_topic(group->second)) {
      const auto key = std::pair(name, topic);
      seen.insert(key);
      Loop& loop = loops_.try_emplace(key, settings_.law).first->second;
      if (lag.measured) {
        for (const auto& [partition, offset] : lag.committed) {
          const auto before = loop.committed.find(partition);
          if (before != loop.committed.end()) loop.consumed += std::max<std::int64_t>(offset - before->second, 0);
        }
        loop.committed = lag.committed;
        loop.drain.update(now.mono, loop.consumed, lag.records);
      }
      steer(now, name, topic, loop, lag.measured ? lag.time : std::nullopt,
            lag.measured ? std::optional(lag.records) : std::nullopt);
    }
  }
  for (auto& [key, loop] : loops_) {
    if (!seen.contains(key)) steer(now, key.first, key.second, loop, std::nullopt, std::nullopt);
  }
  // A group or topic that is gone, and whose limit has been let go, is forgotten.
  std::erase_if(loops_, [&](const auto& entry) { return !seen.contains(entry.first) && !entry.second.law.limit(); });
}

void Steering::steer(Now now, const std::string& group, const std::string& topic, Loop& loop,
                     std::optional<Duration> lag, std::optional<std::int64_t> records) {
  // What records over drain rate foretells steadies a law that holds. It must not start one: a consumer that has just
  // restarted drains nothing for a moment and would be foretold any lag at all.
  const bool holds = loop.law.limit() || (lag && *lag >= settings_.law.target / 2);
  const auto limit = loop.law.update(lag, loop.drain.mean(), holds ? records : std::nullopt);
  const Signal signal{SignalKind::kLagTime, loop.law.lag() ? to_seconds(*loop.law.lag()) : 0};
  const std::string author = "lag law of " + group;
  const Scope scope{.topic = topic};
  const std::string foretold = lag && *loop.law.lag() > *lag && records
                                   ? fmt::format(" and its {} records will take {:.1f} s", *records, signal.value)
                                   : "";
  const std::string why =
      lag ? fmt::format("lag of {} on {} is {:.1f} s{}, target {:.1f} s; it drains {:.0f} records/s", group, topic,
                        to_seconds(*lag), foretold, to_seconds(settings_.law.target), loop.drain.mean().value_or(0))
          : fmt::format("lag of {} on {} cannot be measured", group, topic);
  if (limit) {
    book_.put(author, {.scope = scope,
                       .records_per_second = limit,
                       .reason = why,
                       .signal = signal,
                       .expires = now.mono + settings_.directive_ttl});
  } else {
    book_.take_back(author, scope, now.mono);
  }
  // The journal gets decisions, not renewals: another phase, or a limit a tenth away from the one last written down.
  const bool moved = limit.has_value() != loop.journaled.has_value() ||
                     (limit && std::abs(*limit - *loop.journaled) > 0.1 * *loop.journaled);
  if (!moved && loop.law.phase() == loop.phase) return;
  loop.phase = loop.law.phase();
  loop.journaled = limit;
  journal_.add({.when = now.mono,
                .law = "lag law",
                .scope = scope,
                .signal = signal,
                .limit = limit,
                .why = fmt::format("{} ({})", why, flow::to_string(loop.phase)),
                .until = limit ? std::optional(now.mono + settings_.directive_ttl) : std::nullopt});
}

}  // namespace weir::guard
