// The ledger: where each millisecond of a record went. Its stages always sum to the total.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/histogram.h"
#include "weir/types.h"

namespace weir::metrics {

/// The points a record passes, in order.
enum class Mark : std::uint8_t {
  kRead,     ///< taken from its source
  kQueued,   ///< accepted by the producer
  kSent,     ///< handed to the Kafka client
  kAcked,    ///< appended and acknowledged
  kFetched,  ///< handed out by the consumer
  kStored,   ///< in the store, transaction committed
};
inline constexpr std::size_t kMarks = 6;
std::string_view to_string(Mark mark);

/// When one record passed which mark, all on one clock (monotonic within a process, wall clock between processes). A
/// stage is the time that ends at a mark, since the mark before; a mark that was never seen adds its time to the next
/// one.
class StageTimes {
 public:
  void stamp(Mark mark, Duration since_epoch) { at_[std::size_t(mark)] = since_epoch; }
  void stamp(Mark mark, MonoTime at) { stamp(mark, at.time_since_epoch()); }
  void stamp(Mark mark, WallTime at) { stamp(mark, at.time_since_epoch()); }

  /// Time spent to reach `mark`; none when it was not seen or is the first. Negative only if a clock went back.
  std::optional<Duration> stage(Mark mark) const;
  /// From the first mark seen to the last.
  Duration total() const;

 private:
  std::array<std::optional<Duration>, kMarks> at_{};
};

/// Stage times of many records. Any thread.
class Ledger {
 public:
  void add(const StageTimes& times);
  LatencySummary stage(Mark mark) const;
  LatencySummary total() const;
  /// Mean of the stages as shares of the mean total, in one line: "sent 2.1 ms (40 %), acked 3.2 ms (60 %), total 5.3
  /// ms".
  std::string line() const;

 private:
  mutable std::mutex mutex_;
  std::array<LatencyHistogram, kMarks> stages_;
  LatencyHistogram total_;
};

}  // namespace weir::metrics
