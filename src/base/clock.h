// Time as a parameter: pure code takes a `Now`; only loops ask a Clock. Tests drive a ManualClock.
#pragma once

#include "weir/types.h"

namespace weir {

/// One reading of both clocks, taken together.
struct Now {
  MonoTime mono;
  WallTime wall;
};

/// Where loops get the time from. Implementations are safe to call from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now now() const = 0;
};

/// The machine's clocks.
const Clock& system_clock();

/// A clock that moves only when told to. Owned by one test thread.
class ManualClock final : public Clock {
 public:
  /// Starts at 2026-01-01T00:00:00Z on the wall and at one hour on the monotonic clock.
  ManualClock();
  Now now() const override { return now_; }
  void advance(Duration by) {
    now_.mono += by;
    now_.wall += by;
  }
  /// Moves the wall clock alone, as NTP or an operator would.
  void step_wall(Duration by) { now_.wall += by; }

 private:
  Now now_;
};

}  // namespace weir
