// Lanes: weighted queues, higher first, none starved.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "weir/flow.h"

namespace weir::flow {

/// Picks the lane that goes next, by stride scheduling: each record moves its lane's pass on by 1/weight and the lowest
/// pass goes first, the higher lane on a tie. A lane that was empty starts at the present pass, so idling saves up no
/// credit and a fresh error goes at once. Pure; owned by one loop.
class LaneSchedule {
 public:
  explicit LaneSchedule(LaneWeights weights = kDefaultLaneWeights);
  /// The lane to serve among those where `waiting`; none when nobody waits. Changes nothing.
  std::optional<Lane> next(const std::array<bool, kLanes>& waiting) const;
  /// A record of `lane` was served; `waiting` as next() saw it.
  void served(Lane lane);
  /// `lane` was empty and now has a record.
  void woke(Lane lane);

 private:
  std::array<double, kLanes> stride_{};
  std::array<double, kLanes> pass_{};
  double present_ = 0;
};

/// The queues themselves. Bounds come from the memory budget its items are charged to, not from here. Owned by one
/// loop.
template <typename T>
class Lanes {
 public:
  explicit Lanes(LaneWeights weights = kDefaultLaneWeights) : schedule_(weights) {}

  void push(Lane lane, T item) {
    auto& queue = at(lane);
    if (queue.empty()) schedule_.woke(lane);
    queue.push_back(std::move(item));
    ++size_;
  }

  /// The lane whose turn it is; none when all are empty. Pass over a lane that may not move now with `skip`.
  std::optional<Lane> next(std::array<bool, kLanes> skip = {}) const {
    std::array<bool, kLanes> waiting{};
    for (std::size_t i = 0; i < kLanes; ++i) waiting[i] = !skip[i] && !queues_[i].empty();
    return schedule_.next(waiting);
  }

  /// Oldest record of a lane that is not empty.
  T& front(Lane lane) {
    WEIR_ASSERT(!at(lane).empty());
    return at(lane).front();
  }
  /// Takes it out and charges the lane's turn.
  T pop(Lane lane) {
    schedule_.served(lane);
    return evict(lane);
  }
  /// Takes it out without a turn: it is not going through.
  T evict(Lane lane) {
    T item = std::move(front(lane));
    at(lane).pop_front();
    --size_;
    return item;
  }

  std::size_t size() const { return size_; }
  std::size_t size(Lane lane) const { return queues_[static_cast<std::size_t>(lane)].size(); }
  bool empty() const { return size_ == 0; }

 private:
  std::deque<T>& at(Lane lane) { return queues_[static_cast<std::size_t>(lane)]; }

  LaneSchedule schedule_;
  std::array<std::deque<T>, kLanes> queues_;
  std::size_t size_ = 0;
};

}  // namespace weir::flow
