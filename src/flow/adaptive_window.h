// Adaptive window: how many bytes may wait for an acknowledgement so that the wait stays at a target.
//
//   in flight --> [ broker ] --> ack delay --+
//       ^                                    |  one decision a round: over the target, shrink in proportion;
//       +------------ limit <----------------+  under it and used, grow (doubling until the first shrink)
#pragma once

#include "weir/flow.h"

namespace weir::flow {

/// A gradient limit with AIMD's caution (after Netflix's concurrency-limits and Vector's adaptive concurrency): one
/// decision per round of acknowledgements, never grown while the sender uses less than half of it, so an idle hour does
/// not open it. Owned by one loop.
class AdaptiveWindow {
 public:
  struct Settings {
    /// Send to acknowledgement, linger included.
    Duration target = defaults::kAckDelayTarget;
    Bytes floor = 64 * kKiB;
    Bytes start = kMiB;
    Bytes ceiling = defaults::kBufferMemory;
  };

  explicit AdaptiveWindow(Settings settings);

  /// True when `bytes` more may be in flight. One record may always be, whatever its size.
  bool room(Bytes bytes) const { return in_flight_ == 0 || in_flight_ + bytes <= limit_; }
  void sent(Bytes bytes);
  void acked(MonoTime now, Bytes bytes, Duration delay);
  /// Left without an acknowledgement: no delay to learn from.
  void dropped(Bytes bytes);

  Bytes limit() const { return limit_; }
  Bytes in_flight() const { return in_flight_; }
  /// Mean delay of the last round; zero before the first.
  Duration delay() const { return delay_; }

 private:
  void decide(Duration mean);

  Settings settings_;
  Bytes limit_;
  Bytes in_flight_ = 0;
  Bytes most_in_flight_ = 0;  // this round
  MonoTime round_began_{};
  Duration delay_sum_{};
  std::int64_t delay_count_ = 0;
  Duration delay_{};
  bool doubling_ = true;
};

}  // namespace weir::flow
