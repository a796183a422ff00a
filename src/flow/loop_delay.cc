#include "flow/loop_delay.h"

#include <algorithm>
#include <bit>

namespace weir::flow {

void LoopDelay::acked(MonoTime now, Duration delay, std::int64_t in_flight) {
  delay = std::max(delay, Duration::zero());
  shortest_ack_ = std::min(shortest_ack_.value_or(delay), delay);
  if (!probe_) return;
  if (!probe_->clear) {
    if (in_flight <= settings_.few) probe_->clear = now;
    return;
  }
  if (now - delay < *probe_->clear) return;
  probe_->shortest = std::min(probe_->shortest, delay);
  if (++probe_->acks < settings_.few) return;
  probed_ = probe_->shortest;
  probed_at_ = now;
  probe_.reset();
}

Duration LoopDelay::ack() const {
  const Duration seen = least(acks_);
  return seen <= settings_.quick ? seen : std::min(seen, probed_);
}

void LoopDelay::progressed(MonoTime now, bool more) {
  if (waiting_since_) {
    const Duration gap = std::max(now - *waiting_since_, Duration(1));
    const auto length = static_cast<double>(gap.count());
    Gaps& gaps = by_length_[std::bit_width(static_cast<std::uint64_t>(gap.count()))];
    gaps.time += length;
    gaps.weighted += length * length;
    gap_time_ += length;
  }
  waiting_since_ = more ? std::optional(now) : std::nullopt;
}

void LoopDelay::update(MonoTime now) {
  // A spell without anything to measure, as in an outage, goes on until there is.
  if (now - began_ < kSpell || (!shortest_ack_ && gap_time_ == 0)) return;
  acks_[spells_ % kSpells] = shortest_ack_.value_or(Duration::zero());
  gaps_[spells_ % kSpells] = median_gap();
  ++spells_;
  began_ = now;
  shortest_ack_.reset();
  by_length_ = {};
  gap_time_ = 0;
  if (!probe_ && least(acks_) > settings_.quick && (!probed_at_ || now - *probed_at_ >= kProbeEvery)) probe_.emplace();
}

Duration LoopDelay::median_gap() const {
  double passed = 0;
  for (const Gaps& gaps : by_length_) {
    passed += gaps.time;
    if (gaps.time > 0 && passed >= gap_time_ / 2) return Duration(static_cast<std::int64_t>(gaps.weighted / gaps.time));
  }
  return Duration::zero();
}

Duration LoopDelay::least(const Spells& spells) { return *std::min_element(spells.begin(), spells.end()); }

}  // namespace weir::flow
