// The words of flow control: what a record, a gate and the guard say to each other.
//
// Everything here is a value: safe to copy, without locks, usable from any thread. The laws that use them are in
// src/flow.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/types.h"

namespace weir {

// ---- Lanes ---------------------------------------------------------------------------------------------------------

/// Priority class of a record. A gate lets a higher lane pass first, but never starves a lower one: see LaneWeights.
/// Order is kept inside a lane, not between lanes.
enum class Lane : std::uint8_t {
  kHigh,    ///< Errors: what somebody waits for.
  kNormal,  ///< The rest.
  kLow,     ///< May wait: debug output, replays.
};
inline constexpr std::size_t kLanes = 3;

/// Shares of the way through when every lane has records waiting. A lane alone gets everything. Each at least 1: with
/// the defaults the low lane keeps 5 %, the normal lane 15 %.
using LaneWeights = std::array<std::uint32_t, kLanes>;
inline constexpr LaneWeights kDefaultLaneWeights{16, 3, 1};

std::string_view to_string(Lane lane);

// ---- Full ----------------------------------------------------------------------------------------------------------

/// What happens to a record that finds no room. "Full" is an outcome, not an error, and every loss is counted by
/// reason.
enum class WhenFull : std::uint8_t {
  kBlock,       ///< The caller waits, up to `max.block.ms`. For sources that can wait: files, generators.
  kSpill,       ///< To the spool on disk. For sources that cannot wait.
  kDropOldest,  ///< The oldest waiting record of the lane makes room; its owner is told `dropped`.
  kDropNewest,  ///< This record is shed; its owner is told `dropped`.
  kReject,      ///< The caller is told at once and keeps the record.
};
std::string_view to_string(WhenFull policy);
/// Spelled as in settings: block, spill, drop_oldest, drop_newest, reject.
Result<WhenFull> parse_when_full(std::string_view text);

// ---- Signals and limits --------------------------------------------------------------------------------------------

/// What was observed when a decision was taken.
enum class SignalKind : std::uint8_t {
  kNone,
  kLagRecords,   ///< records between the committed offset and the end of the log
  kLagTime,      ///< seconds since the committed offset was the end of the log
  kUnconsumed,   ///< records admitted here and not yet consumed
  kAckDelay,     ///< milliseconds from send to acknowledgement
  kMemory,       ///< bytes held
  kMessageRate,  ///< records a second
  kByteRate,     ///< bytes a second
  kThrottle,     ///< milliseconds of throttling the broker reported
  kOperator,     ///< a person asked; the value is the limit they set
};
std::string_view to_string(SignalKind kind);
/// Unit of a signal's value: "records", "s", "ms", "bytes", "records/s", "bytes/s" or "".
std::string_view unit_of(SignalKind kind);

struct Signal {
  SignalKind kind = SignalKind::kNone;
  double value = 0;
};

/// Which limit holds records back. Also the label `reason` of weir_limited_seconds.
enum class LimitedBy : std::uint8_t {
  kNothing,
  kPause,        ///< an operator's pause, or the pause while lag is above max_lag
  kDirective,    ///< a rate from the guard
  kMessageRate,  ///< own token bucket, records/s
  kByteRate,     ///< own token bucket, bytes/s
  kMemory,       ///< buffer.memory is used up
  kAckDelay,     ///< the adaptive window: acknowledgements take longer than the target
  kConsumer,     ///< the end-to-end window: the consumer has enough to do
};
inline constexpr std::size_t kLimitedByCount = 8;
std::string_view to_string(LimitedBy limit);

/// The limit in force, for a status line, a page, a metric: `limited_by` kNothing means records pass freely.
struct LimitState {
  LimitedBy limited_by = LimitedBy::kNothing;
  /// Records, bytes, records/s or bytes/s, as `limited_by` implies. 0 for a pause.
  double limit = 0;
  /// What was seen against it, same unit or that of the signal.
  Signal signal;
  /// One phrase for people, without a full stop: "consumer drains 3000 records/s, 15000 of 15000 unconsumed".
  std::string why;
};

// ---- Directives ----------------------------------------------------------------------------------------------------

/// Whom a directive concerns. An empty member means all; partition needs a topic.
struct Scope {
  std::string client_id;
  std::string topic;
  std::optional<PartitionId> partition;

  /// True when a record of `client` for `topic`/`partition` falls under this scope.
  bool covers(std::string_view client, std::string_view record_topic,
              std::optional<PartitionId> record_partition) const;
  auto operator<=>(const Scope&) const = default;
};
/// "everything", "client app-1", "topic logs", "logs/3", joined by ", ".
std::string to_string(const Scope& scope);

/// What the guard, or an operator through it, tells a producer. It always expires: a guard that dies leaves a safe
/// state. Over HTTP a time to live travels (clocks differ); the receiver turns it into `expires` on its own monotonic
/// clock.
struct Directive {
  Scope scope;
  /// Nothing may pass until it expires or is taken back.
  bool pause = false;
  /// Records a second, above 0. Empty: no such limit.
  std::optional<double> records_per_second;
  /// Bytes a second, above 0. Empty: no such limit.
  std::optional<double> bytes_per_second;
  /// For people: "lag of weir-sink on logs is 7.2 s, target 5 s".
  std::string reason;
  Signal signal;
  MonoTime expires{};

  bool active(MonoTime now) const { return now < expires; }
};

/// Defaults of the whole project, in one place.
namespace defaults {
inline constexpr Bytes kBufferMemory = 32 * kMiB;
inline constexpr Duration kMaxBlock = std::chrono::seconds(60);
inline constexpr Duration kLagTarget = std::chrono::seconds(5);
inline constexpr std::int64_t kMaxLag = 1'000'000;
inline constexpr Duration kAckDelayTarget = std::chrono::milliseconds(50);
inline constexpr double kRateFloor = 100;          // records/s
inline constexpr std::int64_t kWindowFloor = 100;  // records
inline constexpr Duration kGuardPeriod = std::chrono::seconds(1);
inline constexpr Duration kDirectiveTtl = std::chrono::seconds(10);
inline constexpr Duration kDrainDeadline = std::chrono::seconds(20);
}  // namespace defaults

}  // namespace weir
