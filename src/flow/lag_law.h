// The lag law: a rate for producers that keeps a consumer's lag, in time, at a target.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/flow.h"

namespace weir::flow {

/// R = D x 0.5^((T - target) / target) above half the target, floor below; under half of it the rate is let go step by
/// step until it no longer binds. At the target R = D, so the lag stays; a lag of twice the target halves the rate.
/// (MongoDB's flow control uses the same curve; its guards for idle and for a lag that cannot be measured are here
/// too.)
///
/// A lag that cannot be measured changes nothing, and after `patience` releases step by step as well: a blind guard
/// must not hold producers for ever. Owned by one loop; call update() once per period.
class LagLaw {
 public:
  struct Settings {
    Duration target = defaults::kLagTarget;
    /// Records a second below which it never goes.
    double floor = defaults::kRateFloor;
    /// A released rate grows by this factor a period.
    double release_step = 1.25;
    /// Released altogether when the rate is this many times the drain rate.
    double free_above = 4;
    /// Periods without a measurement before it releases.
    int patience = 10;
  };

  enum class Phase {
    kFree,       ///< no limit
    kHolding,    ///< the formula is in force
    kReleasing,  ///< under half the target, or blind for long: growing step by step
    kBlind,      ///< cannot measure: nothing changes
  };

  explicit LagLaw(Settings settings) : settings_(settings) {}

  /// `lag`: T, how long ago the committed offset was the end of the log; none when it could not be measured. `drain`: D
  /// in records a second, none when unknown (then the last one). `records`: the lag in records, if known.
  ///
  /// T answers late: what is consumed now was produced T ago, at the rate allowed then, and where the rate takes four
  /// seconds to reach the producers a law on T alone swings between 0 and 17 s for ever. The wait of what is there
  /// already, records / D, is what T is going to be. So with `records` known the formula looks at whichever is longer:
  /// never looser than T, and early where the lag grows. Release waits for both. Returns the limit in records a second;
  /// none means free.
  std::optional<double> update(std::optional<Duration> lag, std::optional<double> drain,
                               std::optional<std::int64_t> records = std::nullopt);

  std::optional<double> limit() const { return limit_; }
  Phase phase() const { return phase_; }
  /// The lag the last update looked at: T, or the foretold one if that is longer. None when blind.
  std::optional<Duration> lag() const { return lag_; }

 private:
  void release();

  Settings settings_;
  std::optional<double> limit_;
  std::optional<double> drain_;
  std::optional<Duration> lag_;
  Phase phase_ = Phase::kFree;
  int blind_periods_ = 0;
};

std::string_view to_string(LagLaw::Phase phase);

}  // namespace weir::flow
