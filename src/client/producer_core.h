// What a Producer is without its thread: lanes, gate, accounts, callbacks. A thread, or a test in virtual time, steps
// it.
//
//   send() -> again_ (given back, first) + lanes_ --admit--> transport --report--> unreported_ -> callback
//             charged by gate_.hold() ------------------------------------------------------------> released
//
// Threads: send(), consumed(), set_lag(), apply(), stats(), request_*() from any thread, under mutex_. step() from one
// thread at a time; callbacks run inside it, without the lock. `outstanding_`, `unreported_` and the transport belong
// to that thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "client/fork_guard.h"
#include "client/transport.h"
#include "flow/gate.h"
#include "flow/journal.h"
#include "flow/lanes.h"
#include "flow/memory_budget.h"
#include "weir/producer.h"

namespace weir {

class ProducerCore {
 public:
  /// `clock` outlives the core.
  ProducerCore(ProducerSettings settings, std::unique_ptr<client::ProducerTransport> transport, const Clock& clock);
  ~ProducerCore();

  /// Bytes charged for a record: its own, what our and the client's bookkeeping take, and the client's copy of key and
  /// headers.
  static Bytes charge_of(const Record& record);

  /// Waits up to `max_wait` for room unless nobody else steps the core or this is a callback.
  SendResult send(Record& record, Duration max_wait, OnDelivery on_delivery);
  void consumed(const std::map<TopicPartition, Offset>& next);
  void forget(const std::string& topic);
  void set_lag(std::optional<std::int64_t> records);
  void apply(const Directive& directive);

  /// Does what can be done now; returns when to come back at the latest. Call again at once after wake().
  MonoTime step();
  /// Lets wait_for_work() return. Any thread.
  void wake();
  /// Sleeps until woken or `until`.
  void wait_for_work(MonoTime until);

  /// From now on lingering is cut short until everything accepted so far has been reported.
  void request_flush();
  /// Waits for that; what is left. At most `deadline`.
  std::size_t wait_flushed(Duration deadline);
  /// Accepts nothing more; what is left at the deadline ends undelivered.
  void request_close(Duration deadline);
  /// True when closed and everything has been reported.
  bool finished() const;
  /// Waits for that, up to `wait`; the number of undelivered records so far.
  bool wait_finished(Duration wait);
  std::size_t undelivered() const;
  bool closing() const;
  /// Drops the transport: the last thing its thread does.
  void release_transport();

  /// True inside a callback of this core.
  bool in_callback() const;
  bool in_child() const { return fork_guard_.in_child(); }
  /// Set before the first send: somebody else steps, so send() may wait.
  void set_threaded() { threaded_ = true; }

  ProducerStats stats() const;
  std::vector<SettingInForce> in_force() const { return in_force_; }
  const ProducerSettings& settings() const { return settings_; }

 private:
  struct Entry;
  using EntryPtr = std::unique_ptr<Entry>;

  void collect(Now now);
  void settle(Now now, client::Report& report);
  void recover(Now now);
  MonoTime hand_over(Now now);
  MonoTime next_batch(Now now, std::vector<EntryPtr>& batch);
  void take_again(EntryPtr entry);
  void end(EntryPtr entry, Delivery::Status status, std::string_view reason, std::string detail);
  void abort_if_due(Now now);
  void run_callbacks();
  void look_at_lag(Now now);
  void update_state(Now now);
  std::size_t left() const;
  EntryPtr take_outstanding(Entry* entry);

  /// Bytes handed over at most: the rest waits in the lanes, where a higher one overtakes.
  static Bytes handed_limit(const ProducerSettings& settings);

  const ProducerSettings settings_;
  const Clock& clock_;
  client::ForkGuard fork_guard_;
  bool threaded_ = false;
  std::vector<SettingInForce> in_force_;

  // -- of the stepping thread
  std::unique_ptr<client::ProducerTransport> transport_;
  std::vector<EntryPtr> outstanding_;  // handed over; an entry knows its place
  std::deque<EntryPtr> unreported_;
  std::deque<EntryPtr> given_back_;  // waiting for the rest to come back, then again_
  std::vector<client::Report> reports_;
  bool recovering_ = false;
  MonoTime reopen_at_{};
  log::Every recover_log_{std::chrono::seconds(30)};

  // -- under the mutex
  mutable std::mutex mutex_;
  std::condition_variable room_;     // senders
  std::condition_variable work_;     // the stepping thread
  std::condition_variable changed_;  // flush and close
  flow::MemoryBudget budget_;
  flow::Journal journal_{100};
  flow::Gate gate_;
  flow::Lanes<EntryPtr> lanes_;
  std::deque<EntryPtr> again_;
  std::uint64_t next_number_ = 1;
  ProducerStats stats_;
  Bytes handed_bytes_ = 0;  // the client's copies of what is outstanding
  std::size_t senders_waiting_ = 0;
  bool woken_ = false;
  bool asleep_ = false;
  std::uint64_t flush_mark_ = 0;  // a flush waits for the records below this number
  std::size_t flush_left_ = 0;    // and so many of them are left
  std::optional<MonoTime> close_at_;
  bool aborted_ = false;
  bool down_ = false;
  std::optional<std::int64_t> lag_;
  MonoTime lag_at_{};
  MonoTime last_progress_{};
  MonoTime paused_until_{};
};

}  // namespace weir
