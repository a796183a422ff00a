// What a Consumer is without its thread: assignments, watermarks, commits. A thread, or a test in virtual time, steps
// it.
//
//   kAssign -> look_up -> on_assign -> start      (retried until the coordinator answers, and for what look_up left
//   out) kRevoke -> wait for handed-out records -> on_revoke -> commit the prefix -> stop
//
// Threads: step() from one thread at a time; hooks run inside it, without a lock. poll() from any thread, one at a
// time. The rest under mutex_. The transport is never called with mutex_ held: its wake-ups come while it holds locks
// of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "client/assigned.h"
#include "client/bell.h"
#include "client/fork_guard.h"
#include "client/transport.h"
#include "weir/consumer.h"

namespace weir {

class ConsumerCore {
 public:
  /// `clock` outlives the core.
  ConsumerCore(ConsumerSettings settings, ConsumerHooks hooks, std::unique_ptr<client::ConsumerTransport> transport,
               const Clock& clock);
  ~ConsumerCore();

  /// Waits only when somebody else steps the core.
  Result<std::vector<ConsumedRecord>> poll(Duration wait);
  void finish(const TopicPartition& partition, std::uint64_t assignment, Offset offset);
  std::optional<Offset> finished_prefix(const TopicPartition& partition) const;
  Result<void> commit(const TopicPartition& partition, Offset next);
  void commit_finished();
  Result<void> flush_commits(Duration deadline);
  void hold(const TopicPartition& partition);
  void release(const TopicPartition& partition);
  void give_back(std::vector<ConsumedRecord> records);

  /// Does what can be done now; returns when to come back at the latest.
  MonoTime step();
  /// There may be something to do and something to read. Any thread.
  void wake();
  void wait_for_work(MonoTime until);

  void request_close(Duration deadline);
  bool closing() const;
  /// True when the group was left, or the deadline for it has passed.
  bool finished() const;
  bool wait_finished(Duration wait);
  /// Left, and the final commit confirmed.
  bool ended_well() const;
  void release_transport();

  bool in_hook() const;
  /// No hook begins from now on; one that runs may go on.
  void end_hooks();
  bool in_child() const { return fork_guard_.in_child(); }
  void set_threaded() { threaded_ = true; }

  std::vector<TopicPartition> assignment() const;
  bool assigned() const;
  ConsumerStats stats() const;
  std::vector<SettingInForce> in_force() const { return in_force_; }
  const ConsumerSettings& settings() const { return settings_; }

 private:
  struct Revocation {
    std::vector<TopicPartition> partitions;
    MonoTime drain_until{};
    bool asked = false;  // on_revoke has run and the prefix is being committed
    MonoTime stop_at{};  // give up waiting for that commit
  };

  void handle(Now now, client::ConsumerEvent& event);
  void try_assign(Now now);
  struct Start {
    Offset offset;
    bool kept_elsewhere = false;  // the application said where
  };
  std::optional<Start> start_of(const AssignedPartition& partition);
  std::optional<Offset> over_gap(const TopicPartition& partition, Offset from, const AssignedPartition& known);
  void out_of_range(const TopicPartition& partition);
  void start_anew(const TopicPartition& partition, Offset from);
  void forget(std::map<TopicPartition, client::Assigned>::iterator at);
  void lose(const std::vector<TopicPartition>& partitions);
  void go_on_revoking(Now now);
  void look_at_ends();
  void commit_hidden_tails();
  void send_commits(Now now);
  void leave_if_closing(Now now);
  void fail_for_good(Error error);

  std::size_t take(const TopicPartition& partition, std::size_t room, std::vector<ConsumedRecord>& out);
  std::vector<TopicPartition> reading_order();
  void finished_some(client::Assigned& assigned, Bytes bytes);

  template <typename Call>
  bool hooked(Call call);

  const ConsumerSettings settings_;
  const ConsumerHooks hooks_;
  const Clock& clock_;
  client::ForkGuard fork_guard_;
  bool threaded_ = false;
  std::vector<SettingInForce> in_force_;
  std::unique_ptr<client::ConsumerTransport> transport_;
  client::Bell work_;
  client::Bell data_;
  std::mutex poll_mutex_;
  std::uint64_t turn_ = 0;  // under poll_mutex_: who reads first
  // Held from the look at an assignment until what was read for it is kept, and while an assignment ends: what the next
  // one fetches is not read for this one. Before mutex_.
  std::mutex reading_mutex_;

  // -- of the stepping thread
  std::vector<client::ConsumerEvent> events_;
  std::vector<TopicPartition> to_assign_;
  MonoTime assign_at_{};
  bool answered_ = true;  // the last kAssign, by start()
  std::optional<Revocation> revocation_;
  std::vector<std::pair<TopicPartition, MonoTime>> out_of_range_;
  bool leaving_ = false;
  std::uint64_t seen_work_ = 0;
  log::Every log_{std::chrono::seconds(30)};

  // -- under the mutex
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<TopicPartition, client::Assigned> assigned_;
  std::uint64_t assignments_ = 0;
  Bytes ready_bytes_ = 0;  // of all partitions
  std::map<TopicPartition, Offset> to_commit_;
  std::map<TopicPartition, Offset> committing_;
  MonoTime commit_sent_{};
  MonoTime commit_again_at_{};
  std::optional<Error> commit_error_;
  std::optional<Error> failed_;
  bool ever_assigned_ = false;
  bool rebalancing_ = false;
  bool hooks_ended_ = false;
  std::optional<MonoTime> close_at_;
  bool left_ = false;
  bool finished_ = false;
  bool final_commit_ok_ = true;
  ConsumerStats stats_;
};

}  // namespace weir
