#include "guard/guard.h"

#include "base/log.h"
#include "guard/guard_state.h"
#include "guard/report.h"
#include "metrics/names.h"
#include "runtime/process.h"

namespace weir::guard {

Guard::State::State(GuardSettings settings, Registry& metrics, std::unique_ptr<ClusterSource> source)
    : settings_(std::move(settings)),
      metrics_(metrics),
      source_(source ? std::move(source) : kafka_source(settings_.admin)),
      monitor_(settings_.lag),
      steering_(settings_.steering, book_, journal_),
      started_(system_clock().now()),
      server_(settings_.http) {
  collect_ = metrics_.on_collect([this] {
    const MonoTime now = system_clock().now().mono;
    const auto lag = published()->lag;
    metrics_.counter(metrics::kLagClamped).raise_to(lag->clamped);
    metrics_.gauge(metrics::kGuardDirectives).set(static_cast<double>(directives(now, {}).size()));
    metrics_.gauge(metrics::kGuardMeasureAgeSeconds).set(to_seconds(now - lag->last_complete.value_or(started_.mono)));
  });
}

Result<http::Address> Guard::State::start() {
  add_routes();
  auto address = server_.start();
  if (address) thread_ = std::thread([this] { measure_until_stopped(); });
  return address;
}

void Guard::State::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  source_->interrupt();
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  server_.stop();
  collect_.reset();
}

std::shared_ptr<const Guard::State::Published> Guard::State::published() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::shared_ptr<const LagSnapshot> Guard::State::measured(Duration timeout) {
  std::unique_lock lock(mutex_);
  const MonoTime asked = system_clock().now().mono;
  wanted_ = true;
  wake_.notify_all();
  wake_.wait_for(lock, timeout, [&] { return stopping_ || published_->lag->taken - published_->lag->took >= asked; });
  return published_->lag;
}

std::vector<Directive> Guard::State::directives(MonoTime now, const DirectiveQuery& query) const {
  std::lock_guard lock(mutex_);
  auto active = book_.active(now, query);
  for (auto& directive : active) {
    directive.expires = std::min(directive.expires, now + settings_.steering.directive_ttl);
  }
  return active;
}

void Guard::State::measure_until_stopped() {
  runtime::name_thread("guard");
  MonoTime next = system_clock().now().mono;
  while (true) {
    measure();
    if (directives_changed) directives_changed();
    send_events();
    next = std::max(next + settings_.period, system_clock().now().mono);
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, next, [&] { return stopping_ || wanted_; });
    if (stopping_) return;
    wanted_ = false;
  }
}

void Guard::State::measure() {
  const MonoTime began = system_clock().now().mono;
  const auto sample = take_sample(*source_, settings_.measure, settings_.topics);
  const Now now = system_clock().now();
  auto fresh = std::make_shared<Published>();
  if (sample) {
    fresh->lag = monitor_.update(began, now, *sample);
  } else {
    fresh->lag = monitor_.update_failed(began, now, sample.error());
  }
  if (!fresh->lag->errors.empty()) {
    metrics_.counter(metrics::kGuardMeasureFailures, {{"reason", sample ? "partial" : "unreachable"}}).add();
  }
  fresh->metrics = lag_to_metrics(*fresh->lag);

  std::lock_guard lock(mutex_);
  if (stopping_) return;  // What was interrupted says nothing about the cluster.
  const auto& before = published_->lag->errors;
  if (fresh->lag->errors != before) {
    for (const auto& error : fresh->lag->errors) log::warn("guard: {}", error);
    if (fresh->lag->errors.empty()) log::info("guard: everything can be measured again");
  }
  steering_.update(now, *fresh->lag);
  book_.expire(now.mono);
  note_journal();
  published_ = std::move(fresh);
  wake_.notify_all();
}

void Guard::State::note_journal() {
  for (const auto& decision : journal_.decisions()) {
    if (decision.number <= counted_decisions_) continue;
    metrics_.counter(metrics::kGuardDecisions, {{"law", decision.law}}).add();
    log::info("guard: {}", flow::to_string(decision));
  }
  counted_decisions_ = journal_.total();
}

void Guard::State::send_events() {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(events_, [](const auto& stream) { return stream->closed(); });
    if (events_.empty()) return;
  }
  const std::string text = status();
  std::lock_guard lock(mutex_);
  for (const auto& stream : events_) stream->send("status", text);
}

Guard::Guard(GuardSettings settings, Registry& metrics, std::unique_ptr<ClusterSource> source)
    : state_(std::make_unique<State>(std::move(settings), metrics, std::move(source))) {}
Guard::~Guard() { stop(); }

void Guard::set_pipeline_status(std::function<PipelineStatus()> status) { state_->pipeline_status = std::move(status); }
void Guard::on_directives(std::function<void()> changed) { state_->directives_changed = std::move(changed); }
Result<http::Address> Guard::start() { return state_->start(); }
void Guard::stop() { state_->stop(); }
std::shared_ptr<const LagSnapshot> Guard::lag() const { return state_->published()->lag; }

std::shared_ptr<const LagSnapshot> Guard::measure(Duration timeout) { return state_->measured(timeout); }

std::vector<Directive> Guard::directives(const DirectiveQuery& query) const {
  return state_->directives(system_clock().now().mono, query);
}

}  // namespace weir::guard
