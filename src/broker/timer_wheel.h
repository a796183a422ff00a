// Deadlines of many waiting things, cheap to set and to take back: a wheel of four levels, 1 ms a tick.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weir/types.h"

namespace weir::broker {

/// Each level has 64 slots, a slot of one level is a whole turn of the level below; what is due sinks level by level.
/// Owned by one loop.
class TimerWheel {
 public:
  /// `start`: no deadline set later is before this.
  explicit TimerWheel(MonoTime start) : start_(start) {}

  /// `id` is due at `when` (now when that is past). An earlier deadline of the same id is replaced.
  void schedule(std::uint64_t id, MonoTime when);
  void cancel(std::uint64_t id);
  /// Moves time on; what became due is appended to `due` and forgotten. Never early, at most 1 ms late.
  void expire(MonoTime now, std::vector<std::uint64_t>& due);
  /// When expire() next has something to do: never after the earliest deadline's tick, sometimes before it.
  std::optional<MonoTime> next() const;

  std::size_t size() const { return entries_.size(); }

 private:
  static constexpr int kLevels = 4;
  static constexpr int kBits = 6;
  static constexpr std::uint64_t kSlots = 1u << kBits;

  struct Entry {
    std::uint64_t tick;
    int level;
    std::uint64_t slot;
    std::list<std::uint64_t>::iterator place;
  };
  void place(std::uint64_t id, std::uint64_t tick);
  std::optional<std::uint64_t> next_tick() const;

  MonoTime start_;
  std::uint64_t current_ = 0;  // every tick up to here has been expired
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::array<std::array<std::list<std::uint64_t>, kSlots>, kLevels> slots_;
  std::array<std::uint64_t, kLevels> used_{};  // one bit a slot
};

}  // namespace weir::broker
