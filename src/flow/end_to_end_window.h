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
#include "flow/loop_delay.h"
#include "weir/flow.h"

namespace weir::flow {

/// W starts at the floor. D, the drain rate, is the peak of the consumer's busy periods (see DrainRate). The loop delay
/// is what the loop would take without any queue (see LoopDelay), so neither a long queue nor a slow start argues for a
/// longer one. Until the consumer was seen busy, what it consumed is a lower bound of D, which opens the window by a
/// multiple each round.
///
/// Source: W = rate x delay is Little's law; a window of rate times base delay, the rate by a maximum filter and the
/// delay by a minimum filter, is BBR's (Cardwell et al., 2016). The target takes the place of its gain: it is the queue
/// that is wanted.
///
/// Unconsumed = in flight + the distance from the consumed to the acknowledged offset of each partition, so a backlog
/// of an earlier run counts. Where progress is unknown it counts from the first acknowledgement seen. Owned by one
/// loop.
class EndToEndWindow {
 public:
  struct Settings {
    Duration target = defaults::kLagTarget;
    std::int64_t floor = defaults::kWindowFloor;
    /// Without any report for this long the progress cannot be measured, and the window, which kept its last W until
    /// then, lets everything pass until the next one. A report that shows no progress is a report: a consumer that
    /// stands keeps the window closed. Empty: never.
    std::optional<Duration> release_after;
  };

  EndToEndWindow(Settings settings, MonoTime now);

  /// True when another record may be admitted.
  bool room(MonoTime now) const {
    return released(now) || (unconsumed() < limit_ && !(loop_.probing() && in_flight_ >= settings_.floor));
  }
  /// Nothing was reported since `release_after`.
  bool released(MonoTime now) const { return now > release_at().value_or(MonoTime::max()); }
  /// When silence lets everything pass; none when it never does.
  std::optional<MonoTime> release_at() const {
    return settings_.release_after ? std::optional(last_heard_ + *settings_.release_after) : std::nullopt;
  }
  /// No broker can be reached: it could not have told of progress either, so its silence does not count. To let go then
  /// would only move the queue nearer to the consumer, for the time after.
  void unreachable(MonoTime now) {
    if (!released(now)) last_heard_ = now;
  }

  void admitted() { ++in_flight_; }
  /// `offset`: where the record was appended; `delay`: since it was admitted.
  void acked(MonoTime now, const TopicPartition& partition, Offset offset, Duration delay);
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
  Duration loop_delay() const { return loop_.ack() + loop_.report_gap(); }
  /// Silence until now.
  Duration silent_for(MonoTime now) const { return now - last_heard_; }
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
  MonoTime last_heard_;
  LoopDelay loop_;
};

}  // namespace weir::flow
