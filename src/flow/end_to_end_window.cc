#include "flow/end_to_end_window.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace weir::flow {

namespace {
constexpr Duration kSpell = std::chrono::seconds(5);
constexpr double kGapSmoothing = 0.2;
constexpr int kReportsPerPeriod = 5;

void smooth(Duration& value, Duration sample, double weight) {
  value = value == Duration::zero()
              ? sample
              : value + Duration(static_cast<std::int64_t>(weight * double((sample - value).count())));
}
}  // namespace

EndToEndWindow::EndToEndWindow(Settings settings, MonoTime now)
    : settings_(settings),
      drain_({.period = settings.target / 10}),
      limit_(settings.floor),
      last_report_(now),
      waiting_since_(now),
      spell_began_(now) {
  WEIR_ASSERT(settings.target > Duration::zero() && settings.floor > 0);
}

void EndToEndWindow::acked(const TopicPartition& partition, Offset offset, Duration delay) {
  --in_flight_;
  ack_delay_ = std::min(ack_delay_, std::max(delay, Duration(1)));
  Progress& progress = partitions_[partition];
  // Nobody has told how far the consumer is: what was there before us is not ours to count.
  if (progress.consumed.value < 0) progress.consumed = offset;
  backlog_ -= progress.backlog();
  progress.acked = std::max(progress.acked, offset + 1);
  backlog_ += progress.backlog();
}

void EndToEndWindow::consumed(const TopicPartition& partition, Offset next) {
  Progress& progress = partitions_[partition];
  if (next <= progress.consumed) return;
  // The first report says where the consumer stands, not how fast it came there.
  if (progress.consumed.value >= 0) consumed_ += next - progress.consumed;
  backlog_ -= progress.backlog();
  progress.consumed = next;
  backlog_ += progress.backlog();
}

void EndToEndWindow::forget(const std::string& topic) {
  std::erase_if(partitions_, [&](const auto& entry) {
    if (entry.first.topic != topic) return false;
    backlog_ -= entry.second.backlog();
    return true;
  });
}

void EndToEndWindow::admitted(MonoTime now) {
  if (unconsumed() == 0) waiting_since_ = now;  // an idle spell is not a slow loop
  ++in_flight_;
}

void EndToEndWindow::reported(MonoTime now) {
  last_report_ = now;
  if (now - spell_began_ >= kSpell) {
    // Two spells are kept, so that the shortest delay is never forgotten at once and never believed for ever.
    earlier_ack_delay_ = std::exchange(ack_delay_, Duration::max());
    spell_began_ = now;
  }
  if (consumed_ > reported_consumed_) {
    // Weighted by its length: a report that comes in pieces, one partition at a time, is one gap and not thirty.
    const Duration gap = now - waiting_since_;
    const double size = double(gap.count()) / double(std::max(report_gap_, Duration(1)).count());
    smooth(report_gap_, gap, std::min(1.0, kGapSmoothing * size));
    waiting_since_ = now;
    reported_consumed_ = consumed_;
  }
  drain_.update(now, consumed_, backlog_);
  // Short periods to find the capacity, long ones to know it: a step of one report then weighs little.
  const Duration shortest = drain_.busy_seen() ? settings_.target / 2 : settings_.target / 10;
  drain_.set_period(std::max(shortest, kReportsPerPeriod * report_gap_));
  resize();
}

void EndToEndWindow::resize() {
  const double span = to_seconds(std::max(settings_.target, 2 * loop_delay()));
  limit_ = std::max(settings_.floor, static_cast<std::int64_t>(drain_rate() * span));
}

}  // namespace weir::flow
