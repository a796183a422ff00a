#include "bench/explain/observe.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::bench {
namespace {

constexpr double kRounding = 0.001;  // ms

double per_second(double count, double ms) { return count * 1000.0 / ms; }

double seconds(const ServiceWindow& window) {
  return static_cast<double>(window.last_number - window.first_number) / window.per_s;
}

// Neighbours within a fifth of each other are one stretch of the same service.
void add_window(std::vector<ServiceWindow>& windows, const ServiceWindow& next) {
  if (windows.empty() ||
      std::max(windows.back().per_s, next.per_s) > 1.2 * std::min(windows.back().per_s, next.per_s)) {
    windows.push_back(next);
    return;
  }
  ServiceWindow& last = windows.back();
  const double took = seconds(last) + seconds(next);
  last.last_number = next.last_number;
  last.per_s = static_cast<double>(last.last_number - last.first_number) / took;
}

}  // namespace

void LineFit::add(double x, double y) {
  ++count_;
  ++points_;
  if (count_ == 1) ++runs_;
  const double dx = x - mean_x_;
  const double dy = y - mean_y_;
  mean_x_ += dx / count_;
  mean_y_ += dy / count_;
  sxx_ += dx * (x - mean_x_);
  sxy_ += dx * (y - mean_y_);
  syy_ += dy * (y - mean_y_);
}

void LineFit::end_run() { count_ = mean_x_ = mean_y_ = 0; }

std::optional<double> LineFit::slope() const {
  if (!(sxx_ > 0)) return std::nullopt;
  return sxy_ / sxx_;
}

double LineFit::noise() const {
  const double around = syy_ - slope().value_or(0) * sxy_;
  return std::sqrt(std::max(0.0, around) / std::max(1.0, points_ - runs_ - 1));
}

void Observer::feed(const Line& line) {
  if (const auto* message = std::get_if<MessageLine>(&line)) {
    on_message(*message);
  } else if (const auto* queue = std::get_if<QueueLine>(&line)) {
    ++seen_.queue_lines;
    on_queue(queue->length);
  } else if (const auto* full = std::get_if<QueueFullLine>(&line)) {
    // A flush follows: the next length is not the growth of one record.
    ++seen_.queue_full_lines;
    seen_.max_queue = std::max(seen_.max_queue, full->length);
    end_queue_run();
  } else if (std::holds_alternative<UnknownLine>(line)) {
    ++seen_.unknown_lines;
    end_queue_run();
  }
}

void Observer::on_queue(std::int64_t length) {
  seen_.max_queue = std::max(seen_.max_queue, length);
  queue_.add(static_cast<double>(seen_.queue_lines), static_cast<double>(length));
  if (previous_queue_) {
    queue_growth_ += static_cast<double>(length - *previous_queue_);
    ++seen_.queue_steps;
  }
  previous_queue_ = length;
}

void Observer::end_queue_run() {
  previous_queue_.reset();
  queue_.end_run();
}

void Observer::on_message(const MessageLine& line) {
  if (!epoch_ms_) epoch_ms_ = line.stamp_ms;
  const double stamp = static_cast<double>(line.stamp_ms - *epoch_ms_);
  const Point point{line.number, stamp, stamp + line.latency_ms, line.latency_ms};

  if (seen_.samples == 0) {
    seen_.first_number = line.number;
    seen_.first_ms = seen_.min_ms = seen_.max_ms = line.latency_ms;
  }
  ++seen_.samples;
  seen_.last_number = line.number;
  seen_.last_ms = line.latency_ms;
  seen_.min_ms = std::min(seen_.min_ms, line.latency_ms);
  seen_.max_ms = std::max(seen_.max_ms, line.latency_ms);

  if (run_ && line.number <= run_->last.number) {
    close_run(*run_, sums_);
    latency_.end_run();
    run_.reset();
  }
  if (!run_) {
    run_.emplace();
    run_->first = run_->last = point;
    run_->min_stamp = run_->max_stamp = stamp;
  }
  Run& run = *run_;
  if (run.count > 0) step(run.last, point);
  ++run.count;
  latency_.add(static_cast<double>(point.number), point.latency_ms);
  run.min_stamp = std::min(run.min_stamp, stamp);
  run.max_stamp = std::max(run.max_stamp, stamp);
  // The first step holds the consumer's start, so windows begin with the second message.
  if (run.count > 1) extend_windows(point);
  run.last = point;
}

void Observer::step(const Point& from, const Point& to) {
  if (to.number != from.number + 1) return;
  ++seen_.neighbours;
  const double took = std::max(0.0, to.receive_ms - from.receive_ms);
  if (to.receive_ms < from.receive_ms - kRounding) ++seen_.backwards;
  const double not_appended_yet = std::clamp(to.stamp_ms - from.receive_ms, 0.0, took);
  const double busy = took - not_appended_yet;
  step_time_ms_ += took;
  const auto ns = static_cast<std::uint64_t>(std::min(busy * 1e6, 9e18));
  Bucket& bucket = steps_[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(ns)), steps_.size() - 1)];
  ++bucket.count;
  bucket.total_ms += busy;
}

void Observer::extend_windows(const Point& point) {
  Run& run = *run_;
  auto& windows = run.windows;
  if (windows.empty()) {
    windows.push_back({point, point});
    return;
  }
  auto& last = windows.back();
  const bool gap = point.number - last[1].number > run.window_width;
  const bool wide = last[1].number - last[0].number >= run.window_width;
  if ((gap || wide) && last[1].number > last[0].number) {
    const Point seam = last[1];
    // What a gap cut short belongs to the stretch before it: a few steps are no rate.
    if (!wide && windows.size() > 1) {
      windows.pop_back();
      windows.back()[1] = seam;
    }
    windows.push_back({seam, point});
  } else {
    last[1] = point;
  }
  if (windows.size() <= kMaxWindows) return;
  for (std::size_t i = 0; i + 1 < windows.size(); i += 2) windows[i / 2] = {windows[i][0], windows[i + 1][1]};
  if (windows.size() % 2 == 1) windows[windows.size() / 2] = windows.back();
  windows.resize((windows.size() + 1) / 2);
  run.window_width *= 2;
}

void Observer::close_run(const Run& run, Sums& sums) {
  if (run.count < 2) return;
  const std::int64_t span = run.last.number - run.first.number;
  ++sums.runs;
  sums.numbers += static_cast<double>(span);
  sums.stamps_ms += run.max_stamp - run.min_stamp;
  sums.receive_ms += run.last.receive_ms - run.first.receive_ms;
  if (span > sums.longest) {
    sums.longest = span;
    sums.windows = run.windows;
  }
}

void Observer::end_of_input() {
  if (run_) close_run(*run_, sums_);
  latency_.end_run();
  run_.reset();
  end_queue_run();
}

Observations Observer::result() const {
  Observations out = seen_;
  Sums sums = sums_;
  if (run_) close_run(*run_, sums);

  out.longest_run = sums.longest;
  out.stamps_ms = sums.stamps_ms;
  out.received_ms = sums.receive_ms;
  if (sums.numbers > 0 && sums.stamps_ms > 0) out.arrival_per_s = per_second(sums.numbers, sums.stamps_ms);
  if (sums.numbers > 0 && sums.receive_ms > 0) out.service_per_s = per_second(sums.numbers, sums.receive_ms);
  if (const auto slope = latency_.slope()) out.slope_ms_per_1000 = *slope * 1000.0;
  out.noise_ms = latency_.noise();
  if (sums.runs == 1 && out.arrival_per_s && out.service_per_s && *out.arrival_per_s > *out.service_per_s) {
    // From the first receive to the last stamp the consumer worked at its rate; the rest was waiting.
    const double worked_ms = std::max(0.0, sums.stamps_ms - seen_.first_ms);
    out.waiting_at_last_stamp = std::max(0.0, sums.numbers - worked_ms * *out.service_per_s / 1000.0);
  }
  for (const auto& window : sums.windows) {
    const auto count = static_cast<double>(window[1].number - window[0].number);
    const double took = window[1].receive_ms - window[0].receive_ms;
    if (count > 0 && took > 0) add_window(out.windows, {window[0].number, window[1].number, per_second(count, took)});
  }
  if (seen_.neighbours > 0 && sums.receive_ms > 0) {
    out.covered = std::clamp(step_time_ms_ / sums.receive_ms, 0.0, 1.0);
    std::int64_t below = 0;
    std::size_t quick = 0;
    while (quick + 1 < steps_.size() && (below += steps_[quick].count) * 4 < seen_.neighbours) ++quick;
    double stalled_ms = 0;
    // At least 8 times a quick step, and at least half a millisecond: below that it is noise of the machine.
    constexpr std::size_t kHalfMs = 20;
    for (std::size_t i = std::max(quick + 4, kHalfMs); i < steps_.size(); ++i) {
      stalled_ms += steps_[i].total_ms;
      out.stalls += steps_[i].count;
    }
    if (step_time_ms_ > 0) out.stalled = std::clamp(stalled_ms / step_time_ms_, 0.0, 1.0);
  }
  if (seen_.queue_steps > 0) {
    const auto steps = static_cast<double>(seen_.queue_steps);
    out.queue_growth_per_record = queue_growth_ / steps;
    out.queue_rise = queue_.slope().value_or(0) * steps;
    out.queue_noise = queue_.noise();
  }
  return out;
}

}  // namespace weir::bench
