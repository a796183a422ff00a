// High and low watermark: the hysteresis behind every on/off decision.
#pragma once

#include <cstdint>

#include "base/assert.h"

namespace weir::flow {

/// Held from the moment the level reaches `high` until it is down at `low`. Owned by one loop.
class Watermarks {
 public:
  /// 0 <= low < high, in whatever unit the caller counts.
  Watermarks(std::int64_t low, std::int64_t high) : low_(low), high_(high) { WEIR_ASSERT(low >= 0 && low < high); }

  /// Takes the present level; returns held().
  bool update(std::int64_t level) {
    const bool held = held_ ? level > low_ : level >= high_;
    if (held && !held_) ++holds_;
    return held_ = held;
  }
  bool held() const { return held_; }
  /// How often it went from free to held.
  std::uint64_t holds() const { return holds_; }
  std::int64_t low() const { return low_; }
  std::int64_t high() const { return high_; }

 private:
  std::int64_t low_;
  std::int64_t high_;
  bool held_ = false;
  std::uint64_t holds_ = 0;
};

}  // namespace weir::flow
