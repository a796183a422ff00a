// The lag law applied: from snapshots of lag to directives for weir producers. Pure: no I/O, no clock, no threads.
//
//   snapshot -> per group and topic: T (largest lag in time), D (drain while there is a backlog)
//            -> flow::LagLaw: R = D x 0.5^((T - target)/target), floor below, free under half the target
//            -> directive for the topic, expiring; renewed every period while the law holds
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "flow/drain_rate.h"
#include "flow/journal.h"
#include "flow/lag_law.h"
#include "guard/directive_book.h"
#include "guard/lag.h"

namespace weir::guard {

struct SteeringSettings {
  /// The groups whose lag steers. Other groups are measured only: an abandoned group must not stop everybody's
  /// producers.
  std::vector<std::string> groups;
  flow::LagLaw::Settings law;
  Duration directive_ttl = defaults::kDirectiveTtl;
};

/// Owned by one thread.
class Steering {
 public:
  /// `book` and `journal` outlive it.
  Steering(SteeringSettings settings, DirectiveBook& book, flow::Journal& journal)
      : settings_(std::move(settings)), book_(book), journal_(journal) {}

  /// Once per period, with the newest snapshot.
  void update(Now now, const LagSnapshot& snapshot);

 private:
  struct Loop {
    explicit Loop(const flow::LagLaw::Settings& settings) : law(settings) {}
    flow::LagLaw law;
    flow::DrainRate drain{{}};
    std::map<PartitionId, Offset> committed;
    std::int64_t consumed = 0;  // Only grows: a partition's first commit and a reset are no progress.
    std::optional<double> journaled;
    flow::LagLaw::Phase phase = flow::LagLaw::Phase::kFree;
  };

  void steer(Now now, const std::string& group, const std::string& topic, Loop& loop, std::optional<Duration> lag,
             std::optional<std::int64_t> records);

  SteeringSettings settings_;
  DirectiveBook& book_;
  flow::Journal& journal_;
  std::map<std::pair<std::string, std::string>, Loop> loops_;  // group, topic
};

}  // namespace weir::guard
