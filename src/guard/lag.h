// Lag as measured: what one poll of the cluster found, per group, topic and partition.
//
// A snapshot is immutable once published: everything that reports lag (API, metrics, page, laws) reads the same one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::guard {

/// What the numbers of a partition mean. The first that applies, in this order.
enum class LagState : std::uint8_t {
  kUnknown,      ///< The ends of the log could not be read: no number.
  kUncommitted,  ///< The group has no committed offset here: MissingCommit says what counts.
  kBeyondEnd,    ///< Committed beyond the log's end: the log was cut, or the topic made anew. Counts as 0.
  kStopped,      ///< Records wait and nobody takes them: no members, or no commit for a while.
  kExpired,      ///< Retention has removed records before the group read them: `lost` says how many.
  kOk,           ///< Caught up, or moving.
};
/// "unknown", "uncommitted", "beyond_end", "stopped", "expired", "ok".
std::string_view to_string(LagState state);

/// What a partition without a committed offset counts as. It mirrors the consumers' auto.offset.reset.
enum class MissingCommit : std::uint8_t {
  kUnknown,   ///< No number; counted in `uncommitted`.
  kEarliest,  ///< Everything the log still has.
  kLatest,    ///< Nothing.
};
Result<MissingCommit> parse_missing_commit(std::string_view text);

struct PartitionLag {
  TopicPartition partition;
  LagState state = LagState::kUnknown;
  std::optional<Offset> committed;
  std::optional<Offset> start;
  std::optional<Offset> end;
  /// Records the group has still to read; never negative. None when there is no honest number.
  std::optional<std::int64_t> records;
  /// How long ago the committed offset was the end of the log. None before it can be told.
  std::optional<Duration> time;
  bool time_exact = true;  ///< False: at least `time`.
  std::int64_t lost = 0;   ///< Records below the log's start that the group had still to read: retention took them.
  /// False: members are there, but none of them reads this topic any more. Left out of the group's sums.
  bool assigned = true;
};

struct GroupLag {
  std::string state;  ///< Kafka's word: "Stable", "Empty", ...; "Unknown" when the broker does not tell.
  std::optional<std::size_t> members;
  std::vector<PartitionLag> partitions;  ///< By topic and partition.
  /// Over the partitions that count: the sum of the numbers there are, none when no partition has one; the largest
  /// time, none while a partition has records (or may have) and no time.
  std::optional<std::int64_t> records;
  std::optional<Duration> time;
  std::optional<Duration> known_time;  ///< The largest time there is, whatever else is not known: at least that.
  std::size_t uncommitted = 0;         ///< Partitions that hold records and have no commit, so no number.
  std::size_t unmeasured = 0;          ///< Partitions whose log ends could not be read.
  /// Between this poll and the one before.
  std::optional<double> consumed_per_s;
  std::optional<double> produced_per_s;
  /// True: this poll could not ask; everything above is from `measured`. `error` says why.
  bool stale = false;
  std::string error;
  MonoTime measured{};

  bool stopped() const;
};

struct LagSnapshot {
  std::uint64_t number = 0;  ///< Counts polls from 1.
  MonoTime taken{};
  WallTime taken_wall{};
  Duration took{};                        ///< How long the poll lasted.
  std::optional<MonoTime> last_complete;  ///< When everything could last be asked.
  std::map<std::string, GroupLag> groups;
  bool complete = false;            ///< False: not every broker could list its groups, so some may be missing.
  std::uint64_t clamped = 0;        ///< Commits seen beyond the end so far.
  std::vector<std::string> errors;  ///< What this poll could not ask.
};

}  // namespace weir::guard
