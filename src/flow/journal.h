// The journal: every decision, when, why, on which signal, by which law, until when.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "weir/flow.h"

namespace weir::flow {

struct Decision {
  /// Counts from 1 without gaps, so a reader knows what it missed.
  std::uint64_t number = 0;
  MonoTime when{};
  /// "lag law", "end-to-end window", "adaptive window", "operator", ...
  std::string law;
  Scope scope;
  Signal signal;
  /// The limit decided on, in the unit the law has; none: released.
  std::optional<double> limit;
  std::string why;
  /// When it ends by itself; none: until the next decision.
  std::optional<MonoTime> until;
};

/// "lag law: topic logs limited to 2,940 (lag 5.1 s): ...". One line for people, without the time.
std::string to_string(const Decision& decision);

/// Bounded: the oldest decisions go first. Owned by one loop.
class Journal {
 public:
  explicit Journal(std::size_t capacity = 1000) : capacity_(capacity) {}

  /// Gives it its number.
  void add(Decision decision);
  const std::deque<Decision>& decisions() const { return decisions_; }
  std::uint64_t total() const { return total_; }

 private:
  std::size_t capacity_;
  std::deque<Decision> decisions_;
  std::uint64_t total_ = 0;
};

}  // namespace weir::flow
