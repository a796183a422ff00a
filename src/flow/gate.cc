#include "flow/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir::flow {

namespace {
/// How long after the last refusal a limit is still shown as the one in force.
constexpr Duration kShown = std::chrono::seconds(1);
/// A window is written to the journal when it moved by this much since the last entry.
constexpr double kWorthNoting = 0.2;

std::optional<TokenBucket> bucket(MonoTime now, std::optional<double> rate, std::optional<double> burst = {}) {
  if (!rate || *rate <= 0) return std::nullopt;
  return TokenBucket(*rate, std::max(1.0, burst.value_or(*rate)), now);
}

bool moved(double from, double to) { return from == 0 || std::abs(to - from) > kWorthNoting * from; }
}  // namespace

// ---- Permit --------------------------------------------------------------------------------------------------------

Permit::Permit(Permit&& other) noexcept
    : gate_(std::exchange(other.gate_, nullptr)), at_(other.at_), size_(other.size_) {}

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this != &other) {
    dropped();
    gate_ = std::exchange(other.gate_, nullptr);
    at_ = other.at_;
    size_ = other.size_;
  }
  return *this;
}

void Permit::succeeded(MonoTime now, const TopicPartition& partition, Offset offset) {
  if (auto* gate = std::exchange(gate_, nullptr)) gate->acked(now, at_, size_, &partition, offset);
}

void Permit::succeeded(MonoTime now) {
  if (auto* gate = std::exchange(gate_, nullptr)) gate->acked(now, at_, size_, nullptr, kNoOffset);
}

void Permit::dropped() {
  if (auto* gate = std::exchange(gate_, nullptr)) gate->lost(size_);
}

// ---- Gate ----------------------------------------------------------------------------------------------------------

Gate::Gate(GateSettings settings, MemoryBudget& budget, Journal& journal, MonoTime now)
    : settings_(std::move(settings)),
      budget_(budget),
      journal_(journal),
      records_(bucket(now, settings_.records_per_second, settings_.records_burst)),
      bytes_(bucket(now, settings_.bytes_per_second, settings_.bytes_burst)) {
  if (settings_.adaptive) adaptive_.emplace(*settings_.adaptive);
  if (settings_.end_to_end) end_to_end_.emplace(*settings_.end_to_end, now);
}

std::optional<Charge> Gate::hold(MonoTime now, Bytes size) {
  auto charge = budget_.try_charge(size);
  if (!charge) note_refused(now, LimitedBy::kMemory);
  return charge;
}

Admission Gate::admit(MonoTime now, Bytes size, std::string_view topic, std::optional<PartitionId> partition) {
  expire_directives(now);
  if (const Refusal no = refusal(now, size, topic, partition); no.by != LimitedBy::kNothing) {
    note_refused(now, no.by);
    return tl::unexpected(no);
  }
  for (auto& directed : directed_) {
    if (!directed.directive.scope.covers(settings_.client_id, topic, partition)) continue;
    if (directed.records) directed.records->take(1);
    if (directed.bytes) directed.bytes->take(double(size));
  }
  if (records_) records_->take(1);
  if (bytes_) bytes_->take(double(size));
  if (adaptive_) adaptive_->sent(size);
  if (end_to_end_) end_to_end_->admitted();
  note_passed(now);
  return Permit(this, now, size);
}

/// Asks everyone and takes nothing, so that a record refused by one limit has not used up another.
Refusal Gate::refusal(MonoTime now, Bytes size, std::string_view topic, std::optional<PartitionId> partition) {
  if (now < paused_until_) return {LimitedBy::kPause, paused_until_};
  for (auto& [directive, records, bytes] : directed_) {
    if (!directive.scope.covers(settings_.client_id, topic, partition)) continue;
    if (directive.pause) return {LimitedBy::kPause, directive.expires};
    for (auto* bucket : {&records, &bytes}) {
      if (!*bucket || (*bucket)->ready(now)) continue;
      return {LimitedBy::kDirective, std::min(directive.expires, (*bucket)->ready_at(now))};
    }
  }
  if (records_ && !records_->ready(now)) return {LimitedBy::kMessageRate, records_->ready_at(now)};
  if (bytes_ && !bytes_->ready(now)) return {LimitedBy::kByteRate, bytes_->ready_at(now)};
  if (end_to_end_ && !end_to_end_->room(now)) {
    // Silence alone opens it again when that is allowed.
    return {LimitedBy::kConsumer, end_to_end_->release_at().value_or(MonoTime::max())};
  }
  if (adaptive_ && !adaptive_->room(size)) return {LimitedBy::kAckDelay, MonoTime::max()};
  return {};
}

void Gate::acked(MonoTime now, MonoTime at, Bytes size, const TopicPartition* partition, Offset offset) {
  if (adaptive_) {
    adaptive_->acked(now, size, now - at);
    const double limit = double(adaptive_->limit());
    if (moved(journaled_adaptive_, limit)) {
      journaled_adaptive_ = limit;
      journal_.add({.when = now,
                    .law = "adaptive window",
                    .signal = {SignalKind::kAckDelay, to_ms(adaptive_->delay())},
                    .limit = limit,
                    .why = "bytes in flight"});
    }
  }
  if (!end_to_end_) return;
  if (partition && offset.value >= 0) {
    end_to_end_->acked(now, *partition, offset, now - at);
  } else {
    end_to_end_->dropped();
  }
}

void Gate::lost(Bytes size) {
  if (adaptive_) adaptive_->dropped(size);
  if (end_to_end_) end_to_end_->dropped();
}

void Gate::pause(MonoTime now, MonoTime until, Signal signal, std::string why) {
  paused_until_ = until;
  pause_signal_ = signal;
  pause_why_ = why;
  journal_.add({.when = now, .law = "pause", .signal = signal, .limit = 0, .why = std::move(why), .until = until});
}

void Gate::direct(MonoTime now, const Directive& directive) {
  expire_directives(now);
  auto found = std::find_if(directed_.begin(), directed_.end(),
                            [&](const Directed& d) { return d.directive.scope == directive.scope; });
  if (found == directed_.end()) {
    directed_.push_back({});
    found = std::prev(directed_.end());
  }
  // A bucket goes on with its balance: a directive that is renewed every second must not grant a burst every second.
  const auto follow = [&](std::optional<TokenBucket>& was, std::optional<double> rate) {
    if (!rate || *rate <= 0) {
      was.reset();
    } else if (was) {
      was->set_rate(now, *rate, std::max(1.0, *rate / 10));
    } else {
      was = bucket(now, rate, *rate / 10);
    }
  };
  follow(found->records, directive.records_per_second);
  follow(found->bytes, directive.bytes_per_second);
  found->directive = directive;
  const std::optional<double> limit = directive.pause                ? 0
                                      : directive.records_per_second ? directive.records_per_second
                                                                     : directive.bytes_per_second;
  journal_.add({.when = now,
                .law = "directive",
                .scope = directive.scope,
                .signal = directive.signal,
                .limit = limit,
                .why = directive.reason,
                .until = directive.expires});
}

void Gate::undirect(MonoTime now, const Scope& scope) {
  if (std::erase_if(directed_, [&](const Directed& d) { return d.directive.scope == scope; }) == 0) return;
  journal_.add({.when = now, .law = "directive", .scope = scope, .why = "taken back"});
}

void Gate::expire_directives(MonoTime now) {
  std::erase_if(directed_, [&](const Directed& d) {
    if (d.directive.active(now)) return false;
    journal_.add({.when = now, .law = "directive", .scope = d.directive.scope, .why = "expired"});
    return true;
  });
}

std::vector<Directive> Gate::directives(MonoTime now) const {
  std::vector<Directive> active;
  for (const auto& d : directed_) {
    if (d.directive.active(now)) active.push_back(d.directive);
  }
  return active;
}

void Gate::consumed(const TopicPartition& partition, Offset next) {
  if (end_to_end_) end_to_end_->consumed(partition, next);
}

void Gate::reported(MonoTime now) {
  if (!end_to_end_) return;
  end_to_end_->reported(now);
  const double limit = double(end_to_end_->limit());
  if (!moved(journaled_end_to_end_, limit)) return;
  journaled_end_to_end_ = limit;
  journal_.add({.when = now,
                .law = "end-to-end window",
                .signal = {SignalKind::kUnconsumed, double(end_to_end_->unconsumed())},
                .limit = limit,
                .why = fmt::format("the consumer drains {:.0f} records/s", end_to_end_->drain_rate())});
}

bool Gate::note_release(MonoTime now) {
  if (!end_to_end_ || end_to_end_->released(now) == journaled_release_) return false;
  journaled_release_ = !journaled_release_;
  Decision decision{.when = now, .law = "end-to-end window"};
  if (journaled_release_) {
    decision.why =
        fmt::format("no report of the consumer's progress for {:.0f} s", to_seconds(end_to_end_->silent_for(now)));
  } else {
    decision.limit = double(end_to_end_->limit());
    decision.signal = {SignalKind::kUnconsumed, double(end_to_end_->unconsumed())};
    decision.why = "the consumer's progress is reported again";
  }
  journal_.add(std::move(decision));
  return true;
}

// ---- What is in force ----------------------------------------------------------------------------------------------

void Gate::note_refused(MonoTime now, LimitedBy by) {
  if (since_ && limited_by_ != by) {
    limited_for_[std::size_t(limited_by_)] += now - *since_;
    since_ = now;
  }
  limited_by_ = by;
  last_refused_ = now;
  if (!since_) since_ = now;
}

void Gate::note_passed(MonoTime now) {
  if (!since_) return;
  limited_for_[std::size_t(limited_by_)] += now - *since_;
  since_.reset();
}

Duration Gate::limited_for(MonoTime now, LimitedBy by) const {
  Duration total = limited_for_[std::size_t(by)];
  if (since_ && limited_by_ == by) total += now - *since_;
  return total;
}

LimitState Gate::state(MonoTime now) const {
  LimitState state = limit_in_force(now);
  if (!end_to_end_ || !end_to_end_->released(now)) return state;
  if (!state.why.empty()) state.why += "; ";
  state.why += fmt::format("no report of the consumer's progress for {:.0f} s, its window is let go",
                           to_seconds(end_to_end_->silent_for(now)));
  return state;
}

LimitState Gate::limit_in_force(MonoTime now) const {
  LimitState state;
  if (!since_ && (last_refused_ == MonoTime::min() || now - last_refused_ >= kShown)) return state;
  state.limited_by = limited_by_;
  switch (limited_by_) {
    case LimitedBy::kNothing: break;
    case LimitedBy::kPause:
    case LimitedBy::kDirective: {
      if (limited_by_ == LimitedBy::kPause && now < paused_until_) {
        state.signal = pause_signal_;
        state.why = fmt::format("paused for {:.1f} s more: {}", to_seconds(paused_until_ - now), pause_why_);
        break;
      }
      const bool paused = limited_by_ == LimitedBy::kPause;
      for (const auto& d : directed_) {
        if (!d.directive.active(now) || d.directive.pause != paused) continue;
        state.signal = d.directive.signal;
        state.limit = paused ? 0 : d.directive.records_per_second.value_or(d.directive.bytes_per_second.value_or(0));
        state.why =
            fmt::format("{} {}: {}", to_string(d.directive.scope),
                        paused ? "paused" : fmt::format("limited to {:.0f}/s", state.limit), d.directive.reason);
        break;
      }
      break;
    }
    case LimitedBy::kMessageRate:
      state.limit = settings_.records_per_second.value_or(0);
      state.why = fmt::format("own limit of {:.0f} records/s", state.limit);
      break;
    case LimitedBy::kByteRate:
      state.limit = settings_.bytes_per_second.value_or(0);
      state.why = fmt::format("own limit of {:.0f} bytes/s", state.limit);
      break;
    case LimitedBy::kMemory:
      state.limit = double(budget_.limit());
      state.signal = {SignalKind::kMemory, double(budget_.used())};
      state.why = fmt::format("{} of {} bytes of buffer.memory are held", budget_.used(), budget_.limit());
      break;
    case LimitedBy::kAckDelay:
      state.limit = double(adaptive_->limit());
      state.signal = {SignalKind::kAckDelay, to_ms(adaptive_->delay())};
      state.why = fmt::format("acknowledgements take {:.0f} ms, {} of {} bytes in flight", to_ms(adaptive_->delay()),
                              adaptive_->in_flight(), adaptive_->limit());
      break;
    case LimitedBy::kConsumer:
      state.limit = double(end_to_end_->limit());
      state.signal = {SignalKind::kUnconsumed, double(end_to_end_->unconsumed())};
      state.why = fmt::format("consumer drains {:.0f} records/s, {} of {} unconsumed", end_to_end_->drain_rate(),
                              end_to_end_->unconsumed(), end_to_end_->limit());
      break;
  }
  return state;
}

}  // namespace weir::flow
