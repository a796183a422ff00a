// End-to-end window: records admitted and not yet consumed stay at what the consumer drains in the target time.
//
//   admit --> [ producer | broker | prefetch ] --> consume --+
//     ^        unconsumed <= W                               | progress, per partition
//     +-- W = max(floor, D x max(target, 2 x loop delay)) <--+
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "flow/drain_rate.h"
#include "weir/flow.h"

namespace weir::flow {

/// W starts at the floor. D, the drain rate, is the peak of the consumer's busy periods (see DrainRate). The loop delay
/// is the shortest ack delay of the last seconds plus the time between reports that showed progress: what the loop
/// would take without any queue, so a long queue does not argue for a longer one (as BBR takes the shortest round
/// trip). Until the consumer was seen busy, what it consumed is a lower bound of D, which opens the window by a
/// multiple each round.
///
/// Unconsumed = in flight + the distance from the consumed to the acknowledged offset of each partition, so a backlog
/// of an earlier run counts. Where progress is unknown it counts from the first acknowledgement seen. Owned by one
/// loop.
class EndToEndWindow {
 public:
  struct Settings {
    Duration target = defaults::kLagTarget;
    std::int64_t floor = defaults::kWindowFloor;
    /// Without any report for this long the progress cannot be measured and the window lets everything pass until the
    /// next one. Empty: silence means no progress (an application that reports by a call).
    std::optional<Duration> release_after;
  };

  EndToEndWindow(Settings settings, MonoTime now);

  /// True when another record may be admitted.
  bool room(MonoTime now) const { return released(now) || unconsumed() < limit_; }
  /// Progress was reported once and not since `release_after`.
  bool released(MonoTime now) const { return now > release_at().value_or(MonoTime::max()); }
  /// When silence lets everything pass; none when it never does.
  std::optional<MonoTime> release_at() const {
    return settings_.release_after ? std::optional(last_report_ + *settings_.release_after) : std::nullopt;
  }

  void admitted(MonoTime now);
  /// `offset`: where the record was appended; `delay`: since it was admitted.
  void acked(const TopicPartition& partition, Offset offset, Duration delay);
  /// Acknowledged, but where is not known (acks=0), or failed: it will not be waited for.
  void dropped() { --in_flight_; }

  /// One report of progress: any number of consumed() calls (`next` = the first offset not consumed yet), then
  /// reported(). Offsets never go back here: an older report that arrives late is ignored.
  void consumed(const TopicPartition& partition, Offset next);
  void reported(MonoTime now);
  /// The topic is gone, or starts anew: its offsets mean nothing any more.
  void forget(const std::string& topic);

  /// W, in records.
  std::int64_t limit() const { return limit_; }
  std::int64_t unconsumed() const { return in_flight_ + backlog_; }
  /// D, records a second; 0 before it was measured.
  double drain_rate() const { return drain_.peak().value_or(0); }
  Duration loop_delay() const {
    const Duration shortest = std::min(ack_delay_, earlier_ack_delay_);
    return (shortest == Duration::max() ? Duration::zero() : shortest) + report_gap_;
  }
  Duration target() const { return settings_.target; }

 private:
  struct Progress {
    Offset acked{-1};     // first offset after the last one acknowledged to us; -1: none yet
    Offset consumed{-1};  // first offset not consumed; -1: never reported
    std::int64_t backlog() const { return acked.value > consumed.value ? acked - consumed : 0; }
  };

  void resize();

  Settings settings_;
  DrainRate drain_;
  std::unordered_map<TopicPartition, Progress> partitions_;
  std::int64_t limit_;
  std::int64_t in_flight_ = 0;
  std::int64_t backlog_ = 0;   // sum over partitions_
  std::int64_t consumed_ = 0;  // records, ever
  std::int64_t reported_consumed_ = 0;
  MonoTime last_report_;
  MonoTime waiting_since_;  // progress is awaited: since the last of it, or since there was something to wait for
  Duration ack_delay_ = Duration::max();          // shortest since spell_began_
  Duration earlier_ack_delay_ = Duration::max();  // shortest of the spell before
  MonoTime spell_began_;
  Duration report_gap_{};  // smoothed, between reports that showed progress
};

}  // namespace weir::flow
