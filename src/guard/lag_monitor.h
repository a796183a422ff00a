// Turns samples of a cluster into lag. Pure: no I/O, no clock, no threads.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "flow/lag_time.h"
#include "guard/cluster_source.h"
#include "guard/lag.h"
#include "weir/types.h"

namespace weir::guard {

struct LagMonitorSettings {
  MissingCommit missing_commit = MissingCommit::kUnknown;
  /// Groups known to read a partition they have committed nothing for from its start: kEarliest for these.
  std::set<std::string> earliest_groups;
  /// Members are there and records wait, but the commit has not moved for this long: stopped.
  Duration stopped_after = std::chrono::seconds(30);
};

/// Keeps what one sample cannot tell: the history of log ends (for lag in time), when each commit last moved, and the
/// last answer of every group, which stands, marked stale, while a coordinator does not answer. Owned by one thread.
class LagMonitor {
 public:
  explicit LagMonitor(LagMonitorSettings settings) : settings_(std::move(settings)) {}

  /// `began` is when the poll began, `now` when it ended.
  std::shared_ptr<const LagSnapshot> update(MonoTime began, Now now, const ClusterSample& sample);
  /// Nothing could be asked: the last snapshot again, everything stale.
  std::shared_ptr<const LagSnapshot> update_failed(MonoTime began, Now now, const Error& why);

 private:
  struct Moved {
    Offset committed;
    MonoTime since;
  };
  struct Totals {
    MonoTime at{};
    std::int64_t committed = 0;
    std::int64_t end = 0;
    std::size_t partitions = 0;
  };

  GroupLag measure(const std::string& name, const ClusterSample::Group& group, const ClusterSample& sample, Now now);
  PartitionLag measure(const std::string& name, const ClusterSample::Group& group, const TopicPartition& partition,
                       const Result<LogEnds>* ends, Now now);
  void measure_time(PartitionLag& lag, Offset position, Now now) const;
  void measure_rates(const std::string& name, GroupLag& lag, Now now);
  void forget_missing(const ClusterSample& sample, const LagSnapshot& snapshot);
  std::shared_ptr<const LagSnapshot> publish(LagSnapshot snapshot, MonoTime began, Now now);

  LagMonitorSettings settings_;
  std::map<TopicPartition, flow::LagTime> history_;
  std::map<std::string, std::map<TopicPartition, Moved>> moved_;
  std::map<std::string, Totals> totals_;
  std::shared_ptr<const LagSnapshot> last_ = std::make_shared<LagSnapshot>();
};

}  // namespace weir::guard
