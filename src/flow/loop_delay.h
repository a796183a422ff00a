// Loop delay: how long a window's loop would take if nothing waited in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/types.h"

namespace weir::flow {

/// The sum of two parts, from admission to acknowledgement and from there to the report that the record was consumed,
/// measured so that neither a queue nor a slow start is taken for the loop:
/// - Of the acknowledgements the shortest delay counts, since only that one has not waited in our own queue. Where the
///   window is always full every one has waited, so a delay that would matter is believed only once it was seen with
///   few records in flight: a probe, again every ten seconds. Both as in BBR (Cardwell et al., 2016).
/// - Of the gaps between reports the median over time counts: half of the time passes in gaps shorter than it. So one
///   stop is no period, and a report that comes in thirty pieces is one gap.
/// - Both are taken over spells of two seconds, and only what three whole spells in a row agree on is believed (the
///   least of them), as CoDel (Nichols, Jacobson, 2012) acts on a delay that stands and not on one that passes. Before
///   the third spell has ended the loop counts as instant: a broker that connects, compiles itself or fills its caches
///   is slow for a moment, and a window made for that moment would leave its queue behind. A loop that becomes shorter
///   is believed at the end of the spell.
/// Owned by one loop.
class LoopDelay {
 public:
  struct Settings {
    /// Acknowledgements as quick as this need no probe.
    Duration quick;
    /// Records in flight during a probe.
    std::int64_t few;
  };

  LoopDelay(Settings settings, MonoTime now) : settings_(settings), began_(now) {}

  /// An acknowledgement came `delay` after its record was admitted and left `in_flight` others.
  void acked(MonoTime now, Duration delay, std::int64_t in_flight);
  /// True while no more than `few` records may be in flight.
  bool probing() const { return probe_.has_value(); }
  /// There is something to consume from now on, and was not before.
  void work_came(MonoTime now) { waiting_since_ = now; }
  /// A report showed progress; `more` is left to consume.
  void progressed(MonoTime now, bool more);
  /// Call it with every report, progress or not: ends the spell when it is over.
  void update(MonoTime now);

  Duration ack() const;
  Duration report_gap() const { return least(gaps_); }

  static constexpr Duration kSpell = std::chrono::seconds(2);
  static constexpr Duration kProbeEvery = std::chrono::seconds(10);

 private:
  static constexpr std::size_t kSpells = 3;
  using Spells = std::array<Duration, kSpells>;

  static Duration least(const Spells& spells);
  Duration median_gap() const;

  // By power of two of the gap: time spent in such gaps, and the same weighted by the gap.
  struct Gaps {
    double time = 0;
    double weighted = 0;
  };

  struct Probe {
    std::optional<MonoTime> clear;  // since then few are in flight
    std::int64_t acks = 0;          // of records admitted since
    Duration shortest = Duration::max();
  };

  Settings settings_;
  MonoTime began_;
  std::optional<Probe> probe_;
  std::optional<MonoTime> probed_at_;
  Duration probed_{};  // what the last probe found
  std::optional<MonoTime> waiting_since_;
  std::optional<Duration> shortest_ack_;
  std::array<Gaps, 64> by_length_{};
  double gap_time_ = 0;
  Spells acks_{};  // of the last whole spells
  Spells gaps_{};
  std::size_t spells_ = 0;  // ever
};

}  // namespace weir::flow
