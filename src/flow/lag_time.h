// Lag in time: how long ago was the committed offset the end of the log?
#pragma once

#include <deque>
#include <optional>

#include "weir/types.h"

namespace weir::flow {

/// Keeps (time, end offset) samples of one partition and interpolates between them. Event times play no part: they may
/// be wrong, and a batch carries one. Bounded: when full, every second of the older samples goes, so the memory covers
/// any span at a coarser grain. Owned by one loop.
class LagTime {
 public:
  /// `most_samples` at least 4.
  explicit LagTime(std::size_t most_samples = 256) : most_(most_samples) {}

  /// The end of the log as seen at `now`; times never go back. An end that fell means another log (a topic made again):
  /// the old samples go.
  void sample(MonoTime now, Offset end);

  struct Lag {
    Duration time{};
    /// False: the committed offset is older than the oldest sample, and the lag at least this long.
    bool exact = true;
  };
  /// None before the first sample. Zero when `committed` is the end, or beyond (the end was read before the commit).
  std::optional<Lag> of(MonoTime now, Offset committed) const;

  std::size_t samples() const { return samples_.size(); }

 private:
  struct Sample {
    MonoTime at;
    Offset end;
  };
  std::size_t most_;
  std::deque<Sample> samples_;
};

}  // namespace weir::flow
