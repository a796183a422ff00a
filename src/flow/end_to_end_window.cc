#include "flow/end_to_end_window.h"

#include <algorithm>

#include "base/assert.h"

namespace weir::flow {

namespace {
constexpr int kReportsPerPeriod = 5;
}  // namespace

EndToEndWindow::EndToEndWindow(Settings settings, MonoTime now)
    : settings_(settings),
      drain_({.period = settings.target / 10}),
      limit_(settings.floor),
      last_heard_(now),
      loop_({.quick = settings.target / 2, .few = settings.floor}, now) {
  WEIR_ASSERT(settings.target > Duration::zero() && settings.floor > 0);
}

void EndToEndWindow::acked(MonoTime now, const TopicPartition& partition, Offset offset, Duration delay) {
  --in_flight_;
  loop_.acked(now, delay, in_flight_);
  Progress& progress = partitions_[partition];
  // Nobody has told how far the consumer is: what was there before us is not ours to count.
  if (progress.consumed.value < 0) progress.consumed = offset;
  const bool had_work = backlog_ > 0;
  backlog_ -= progress.backlog();
  progress.acked = std::max(progress.acked, offset + 1);
  backlog_ += progress.backlog();
  if (!had_work && backlog_ > 0) loop_.work_came(now);
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

void EndToEndWindow::reported(MonoTime now) {
  last_heard_ = now;
  if (consumed_ > reported_consumed_) loop_.progressed(now, backlog_ > 0);
  reported_consumed_ = consumed_;
  loop_.update(now);
  drain_.update(now, consumed_, backlog_);
  // Short periods to find the capacity, long ones to know it: a step of one report then weighs little.
  const Duration shortest = drain_.busy_seen() ? settings_.target / 2 : settings_.target / 10;
  drain_.set_period(std::max(shortest, kReportsPerPeriod * loop_.report_gap()));
  resize();
}

void EndToEndWindow::resize() {
  const double span = to_seconds(std::max(settings_.target, 2 * loop_delay()));
  limit_ = std::max(settings_.floor, static_cast<std::int64_t>(drain_rate() * span));
}

}  // namespace weir::flow
