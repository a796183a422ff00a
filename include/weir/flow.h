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
/// Order is kept inside a lane, not between lanes. Among lanes with records waiting the next is chosen by stride
/// scheduling (Waldspurger and Weihl, 1995): each record moves its lane's pass on by 1 / weight, the lowest pass goes
/// first.
enum class Lane : std::uint8_t {
  kHigh,    ///< Errors: what somebody waits for.
  kNormal,  ///< The rest.
  kLow,     ///< May wait: debug output, replays.
};
inline constexpr std::size_t kLanes = 3;

/// Shares of the way through, counted in records, when every lane has records waiting; in the order of Lane. A lane
/// alone gets everything. Each from 1 (a lane of 0 would starve, Producer::open() refuses it): with the defaults the
/// low lane keeps 5 %, the normal lane 15 %.
using LaneWeights = std::array<std::uint32_t, kLanes>;
inline constexpr LaneWeights kDefaultLaneWeights{16, 3, 1};

/// "high", "normal" or "low".
std::string_view to_string(Lane lane);

// ---- Full ----------------------------------------------------------------------------------------------------------

/// What happens to a record that finds no room. "Full" is an outcome, not an error: the caller keeps the record, so
/// nothing is lost either way.
enum class WhenFull : std::uint8_t {
  kBlock,   ///< The caller waits, up to `max.block.ms`. For sources that can wait: files, generators.
  kReject,  ///< The caller is told at once.
};

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
/// For people and JSON: "none", "lag", "lag time", "unconsumed", "ack delay", "memory", "message rate", "byte rate",
/// "throttle", "operator".
std::string_view to_string(SignalKind kind);
/// Unit of a signal's value: "records", "s", "ms", "bytes", "records/s", "bytes/s" or "".
std::string_view unit_of(SignalKind kind);

/// One observation.
struct Signal {
  SignalKind kind = SignalKind::kNone;
  double value = 0;  ///< in unit_of(kind)
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
/// As in labels: "nothing", "pause", "directive", "message_rate", "byte_rate", "memory", "ack_delay", "consumer".
std::string_view to_string(LimitedBy limit);

/// The limit in force, for a status line, a page, a metric. kNothing: no limit of ours; `why` may name a silent broker.
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

/// Whom a directive concerns. An empty member means all; a partition without a topic concerns that partition of every
/// topic, which nobody asks for: name the topic with it.
struct Scope {
  std::string client_id;
  std::string topic;
  std::optional<PartitionId> partition;

  /// True when a record of `client` for `record_topic`/`record_partition` falls under this scope. A record whose
  /// partition is not known yet (empty: the client library chooses it later) may go to any, so a scope of one partition
  /// covers it too: a limit on logs/3 then holds all of logs. weir's agent sends such records.
  bool covers(std::string_view client, std::string_view record_topic,
              std::optional<PartitionId> record_partition) const;
  auto operator<=>(const Scope&) const = default;
};
/// For people: "everything", or what there is of "client app-1", "topic logs", "partition 3", joined by ", ".
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
  /// What led to it.
  Signal signal;
  /// On the monotonic clock of the process that follows it. Already past: it takes back the one of the same scope.
  MonoTime expires{};

  /// In force at `now`: until `expires`, itself excluded.
  bool active(MonoTime now) const { return now < expires; }
};

/// Defaults of the whole project, in one place.
namespace defaults {
inline constexpr Bytes kBufferMemory = 32 * kMiB;                ///< `buffer.memory`
inline constexpr Duration kMaxBlock = std::chrono::seconds(60);  ///< `max.block.ms`
inline constexpr Duration kLagTarget = std::chrono::seconds(5);  ///< of the end-to-end window and the lag law
inline constexpr std::int64_t kMaxLag = 1'000'000;               ///< records, for /api/check
inline constexpr Duration kAckDelayTarget = std::chrono::milliseconds(50);  ///< of the adaptive window
inline constexpr double kRateFloor = 100;                                   ///< records/s the lag law never goes below
inline constexpr std::int64_t kWindowFloor = 100;                           ///< records the window never goes below
inline constexpr Duration kGuardPeriod = std::chrono::seconds(1);           ///< between two measurements
inline constexpr Duration kDirectiveTtl = std::chrono::seconds(10);         ///< how long the guard's word holds
inline constexpr Duration kDrainDeadline = std::chrono::seconds(20);        ///< `--drain`
}  // namespace defaults

}  // namespace weir
