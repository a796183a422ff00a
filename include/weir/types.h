// The vocabulary every part of weir shares: results, strong ids, units of time and size.
//
// Everything here is a value type: safe to copy, without locks, usable from any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace weir {

// ---- Results -------------------------------------------------------------------------------------------------------

/// What kind of failure an Error is, for code that must choose what to do next. People read Error::message.
enum class ErrorKind {
  kInvalid,      ///< Bytes, settings or arguments that break a rule. Trying again does not help.
  kUnsupported,  ///< Well formed, but not something this build or this peer can do.
  kNotFound,     ///< The named thing does not exist.
  kExists,       ///< The named thing exists already, or is held by somebody else.
  kIo,           ///< The operating system refused: disk, file, socket.
  kNoSpace,      ///< The disk is full. Worth trying again when there is space.
  kTimeout,      ///< Not done within the time allowed.
  kUnavailable,  ///< The peer cannot be reached or cannot serve now. Worth trying again.
  kClosed,       ///< The object was closed or is stopping.
};

/// A failure: one line for people that names the thing and what to do, and a kind for code.
struct Error {
  ErrorKind kind = ErrorKind::kInvalid;
  std::string message;
};

/// The outcome of whatever can fail because of the outside world. Broken invariants of ours assert instead.
template <typename T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning a failure: `return fail(ErrorKind::kIo, "...")`.
inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error{kind, std::move(message)});
}

// ---- Strong numbers ------------------------------------------------------------------------------------------------

/// A number that cannot be mixed up with another: `Offset` and `PartitionId` do not convert into each other.
template <typename Tag, typename Rep>
struct Strong {
  Rep value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Rep v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

/// A number on a line: a Strong that can be moved by a distance and measured against another.
template <typename Tag, typename Rep>
struct StrongPosition : Strong<Tag, Rep> {
  using Strong<Tag, Rep>::Strong;
  constexpr auto operator<=>(const StrongPosition&) const = default;

  friend constexpr StrongPosition operator+(StrongPosition a, Rep distance) {
    return StrongPosition(a.value + distance);
  }
  friend constexpr StrongPosition operator-(StrongPosition a, Rep distance) {
    return StrongPosition(a.value - distance);
  }
  friend constexpr Rep operator-(StrongPosition a, StrongPosition b) { return a.value - b.value; }
  constexpr StrongPosition& operator+=(Rep distance) {
    this->value += distance;
    return *this;
  }
  constexpr StrongPosition& operator++() {
    ++this->value;
    return *this;
  }
};

/// Position of a record in a partition. Never negative for a stored record.
using Offset = StrongPosition<struct OffsetTag, std::int64_t>;
/// Number of a partition within its topic, from 0.
using PartitionId = Strong<struct PartitionTag, std::int32_t>;
/// Kafka's node.id (broker id).
using NodeId = Strong<struct NodeTag, std::int32_t>;
/// Kafka's producer id (KIP-98); -1 means none.
using ProducerId = Strong<struct ProducerIdTag, std::int64_t>;

inline constexpr Offset kNoOffset{-1};
inline constexpr ProducerId kNoProducerId{-1};

/// A partition of a topic.
struct TopicPartition {
  std::string topic;
  PartitionId partition;
  auto operator<=>(const TopicPartition&) const = default;
};

// ---- Time and size -------------------------------------------------------------------------------------------------

/// A span of time. All durations inside weir have this resolution.
using Duration = std::chrono::nanoseconds;
/// A point on the monotonic clock: for deadlines and rates.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
/// A point on the wall clock: for record timestamps, which Kafka keeps in Unix milliseconds.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

/// Unix milliseconds, as records and JSON carry them.
inline std::int64_t to_unix_ms(WallTime t) {
  return std::chrono::floor<std::chrono::milliseconds>(t.time_since_epoch()).count();
}
/// Any number may stand in a record: what lies outside the years 1824 to 2116 becomes the end of that range, so that
/// the difference of two points always fits a Duration.
inline WallTime from_unix_ms(std::int64_t ms) {
  constexpr std::int64_t kFarthest = (INT64_MAX / 2) / 1'000'000;
  return WallTime(std::chrono::milliseconds(std::clamp(ms, -kFarthest, kFarthest)));
}

/// Fractional milliseconds and seconds, for what is printed.
inline double to_ms(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
/// `s`: at most 292 years either way.
inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

/// A number of bytes.
using Bytes = std::size_t;
inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;

}  // namespace weir

template <typename Tag, typename Rep>
struct std::hash<weir::Strong<Tag, Rep>> {
  std::size_t operator()(const weir::Strong<Tag, Rep>& v) const noexcept { return std::hash<Rep>{}(v.value); }
};
template <typename Tag, typename Rep>
struct std::hash<weir::StrongPosition<Tag, Rep>> {
  std::size_t operator()(const weir::StrongPosition<Tag, Rep>& v) const noexcept { return std::hash<Rep>{}(v.value); }
};
template <>
struct std::hash<weir::TopicPartition> {
  std::size_t operator()(const weir::TopicPartition& tp) const noexcept {
    return std::hash<std::string>{}(tp.topic) * 31 + static_cast<std::size_t>(tp.partition.value);
  }
};
