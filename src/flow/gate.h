// The gate: where a record asks to enter. Composes budget, buckets, directives and windows into one answer.
//
//   hold() charges memory            -> [ Lanes ] -> admit(): pause, directives, rates, windows -> Permit -> send
//   (else: WhenFull)                                 (else: refused by whom, ask again when)       |
//        ^                                                                                         v
//        +---------------------------- memory, windows <---------------------- succeeded() / dropped()
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flow/adaptive_window.h"
#include "flow/end_to_end_window.h"
#include "flow/journal.h"
#include "flow/memory_budget.h"
#include "flow/token_bucket.h"
#include "weir/flow.h"

namespace weir::flow {

struct GateSettings {
  /// For directives by client.
  std::string client_id;
  /// Above 0 each; empty: no such limit. A burst defaults to one second's worth.
  std::optional<double> records_per_second;
  std::optional<double> records_burst;
  std::optional<double> bytes_per_second;
  std::optional<double> bytes_burst;
  std::optional<AdaptiveWindow::Settings> adaptive;
  std::optional<EndToEndWindow::Settings> end_to_end;
};

class Gate;

/// The right of one record to be on its way. Move-only; tell it the outcome exactly once: a permit that goes without
/// one counts as dropped. Same thread rule as its gate, which it must not outlive.
class Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit() { dropped(); }

  /// Acknowledged at this offset.
  void succeeded(MonoTime now, const TopicPartition& partition, Offset offset);
  /// Acknowledged, place unknown (acks=0).
  void succeeded(MonoTime now);
  /// Failed, shed or taken back: nothing to wait for, no delay to learn from.
  void dropped();
  explicit operator bool() const { return gate_ != nullptr; }

 private:
  friend class Gate;
  Permit(Gate* gate, MonoTime at, Bytes size) : gate_(gate), at_(at), size_(size) {}
  Gate* gate_ = nullptr;
  MonoTime at_{};
  Bytes size_ = 0;
};

/// Why a record must wait. `retry_at` is MonoTime::max() when only an event can help: an acknowledgement, progress of
/// the consumer, a directive taken back.
struct Refusal {
  LimitedBy by = LimitedBy::kNothing;
  MonoTime retry_at = MonoTime::max();
};

using Admission = tl::expected<Permit, Refusal>;

/// Pure: no I/O, no clock, no waiting. Owned by one loop (or guarded by its owner's mutex, permits included); only the
/// budget may be shared.
class Gate {
 public:
  /// `budget` and `journal` outlive the gate.
  Gate(GateSettings settings, MemoryBudget& budget, Journal& journal, MonoTime now);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Room for a record's bytes, before it enters a lane; none when `buffer.memory` is used up.
  std::optional<Charge> hold(MonoTime now, Bytes size);
  /// May this record go now? Partition unknown: a directive for one partition of its topic holds it too.
  Admission admit(MonoTime now, Bytes size, std::string_view topic,
                  std::optional<PartitionId> partition = std::nullopt);

  /// Nothing passes before `until`: the article's pause while the lag is above max_lag, or an operator's.
  void pause(MonoTime now, MonoTime until, Signal signal, std::string why);
  /// Puts a directive in force until it expires; replaces the one with the same scope.
  void direct(MonoTime now, const Directive& directive);
  /// Takes back the directive of this scope, if there is one.
  void undirect(MonoTime now, const Scope& scope);
  std::vector<Directive> directives(MonoTime now) const;

  /// Progress of the consumer, for the end-to-end window (nothing happens without one).
  void consumed(const TopicPartition& partition, Offset next);
  void reported(MonoTime now);
  /// The topic's offsets hold no more: see EndToEndWindow::forget().
  void forget(const std::string& topic) {
    if (end_to_end_) end_to_end_->forget(topic);
  }
  /// No broker can be reached: see EndToEndWindow::unreachable().
  void unreachable(MonoTime now) {
    if (end_to_end_) end_to_end_->unreachable(now);
  }
  /// Writes it down once when the end-to-end window was let go, or is in force again. True when that has changed.
  bool note_release(MonoTime now);

  /// The limit that held records back within the last second, and why; and that the window was let go, if it was.
  LimitState state(MonoTime now) const;
  /// Time with a record refused and none admitted, by limit, since the gate was made.
  Duration limited_for(MonoTime now, LimitedBy by) const;

  const AdaptiveWindow* adaptive() const { return adaptive_ ? &*adaptive_ : nullptr; }
  EndToEndWindow* end_to_end() { return end_to_end_ ? &*end_to_end_ : nullptr; }
  const EndToEndWindow* end_to_end() const { return end_to_end_ ? &*end_to_end_ : nullptr; }
  const MemoryBudget& budget() const { return budget_; }

 private:
  friend class Permit;
  struct Directed {
    Directive directive;
    std::optional<TokenBucket> records;
    std::optional<TokenBucket> bytes;
  };

  Refusal refusal(MonoTime now, Bytes size, std::string_view topic, std::optional<PartitionId> partition);
  LimitState limit_in_force(MonoTime now) const;
  void expire_directives(MonoTime now);
  void note_refused(MonoTime now, LimitedBy by);
  void note_passed(MonoTime now);
  void acked(MonoTime now, MonoTime at, Bytes size, const TopicPartition* partition, Offset offset);
  void lost(Bytes size);

  GateSettings settings_;
  MemoryBudget& budget_;
  Journal& journal_;
  std::optional<TokenBucket> records_;
  std::optional<TokenBucket> bytes_;
  std::vector<Directed> directed_;
  MonoTime paused_until_ = MonoTime::min();
  Signal pause_signal_;
  std::string pause_why_;
  std::optional<AdaptiveWindow> adaptive_;
  std::optional<EndToEndWindow> end_to_end_;
  double journaled_end_to_end_ = 0;  // the limits last written down
  double journaled_adaptive_ = 0;
  bool journaled_release_ = false;

  // What held records back: `since_` while a record is refused and none has passed.
  LimitedBy limited_by_ = LimitedBy::kNothing;
  MonoTime last_refused_ = MonoTime::min();
  std::optional<MonoTime> since_;
  std::array<Duration, kLimitedByCount> limited_for_{};
};

}  // namespace weir::flow
