// A guarded Kafka consumer: batches, high and low watermarks per partition, commits only by call.
//
//   broker -> small prefetch per partition -> poll() -> the application -> finish() / commit()
//
// A partition with `high_watermark` records handed out and not finished is held: its prefetch is left unread until
// `low_watermark` is reached. Nothing fetched is thrown away, the other partitions go on, and the member stays in its
// group. Threads: every function may be called from any thread. One thread of ours serves the group (rebalances,
// heartbeats, hooks, commits); an application that takes its time between two poll() calls is not thrown out of the
// group. Delivery is at least once: what was not committed is delivered again after a crash or a rebalance.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/producer.h"
#include "weir/record.h"
#include "weir/types.h"

namespace weir {

/// Where to start when a partition has no committed offset.
enum class OffsetReset : std::uint8_t { kEarliest, kLatest, kError };
/// What to do when the committed (or stored) offset has been deleted by retention.
enum class GapPolicy : std::uint8_t {
  kEarliest,  ///< go on at the earliest retained record and tell on_gap once
  kError,     ///< stop: poll() fails with the gap in its message
};

/// Kafka-named settings keep Kafka's meaning. `kafka_settings` translates text in Java or librdkafka spelling into
/// these. open() refuses what is out of range here, the client library the ranges of its own settings.
struct ConsumerSettings {
  std::string bootstrap_servers = "127.0.0.1:9092";
  std::string client_id = "weir";
  std::string group_id = "weir";          ///< `group.id`, not empty
  std::string group_instance_id;          ///< `group.instance.id`: static member; empty: dynamic
  std::vector<std::string> topics;        ///< at least one
  std::vector<std::string> first_topics;  ///< of `topics`: read before the others whenever they have records

  std::size_t max_poll_records = 500;  ///< `max.poll.records`, from 1
  std::size_t high_watermark = 1000;   ///< records of one partition handed out and unfinished: hold at this; from 1
  std::size_t low_watermark = 500;     ///< and go on at this; 0 <= low < high
  /// At least 1 MiB. Half of it bounds what is handed out and unfinished (the batch that passes it is still handed
  /// out), a quarter what is read ahead. The client library's prefetch is apart: for each partition a 128th of it, not
  /// above 1 MiB, or two fetches where `max_partition_fetch_bytes` is set. So 32 partitions fill the last quarter; more
  /// of them, or larger fetches, go beyond, which is logged. What the application makes of a record is its own: `weir
  /// sink` holds each message twice.
  Bytes buffer_memory = defaults::kBufferMemory;

  Bytes fetch_min_bytes = 1;  ///< `fetch.min.bytes`
  /// `fetch.max.wait.ms`. Below Kafka's 500: while a fetch waits for idle partitions, a busy one whose prefetch is
  /// empty waits too.
  Duration fetch_max_wait = std::chrono::milliseconds(100);
  /// `max.partition.fetch.bytes`; 0: half of a partition's prefetch, not above 64 KiB.
  Bytes max_partition_fetch_bytes = 0;
  Duration session_timeout = std::chrono::seconds(10);     ///< `session.timeout.ms`
  Duration heartbeat_interval = std::chrono::seconds(3);   ///< `heartbeat.interval.ms`
  Duration max_poll_interval = std::chrono::minutes(5);    ///< `max.poll.interval.ms`
  OffsetReset auto_offset_reset = OffsetReset::kEarliest;  ///< `auto.offset.reset`
  GapPolicy gap = GapPolicy::kEarliest;                    ///< what to do about records deleted before they were read
  bool read_committed = true;                              ///< `isolation.level`
  /// Longest wait for handed-out records when partitions are taken away; from 0. Not when the consumer is closed.
  Duration revoke_drain = std::chrono::seconds(5);

  /// Passed to the client library as they are (security settings and the like), librdkafka spelling.
  std::vector<std::pair<std::string, std::string>> passed_through;
};

/// What is known about a partition when it is assigned. Offsets are next ones: `log_end` is behind the last record.
struct AssignedPartition {
  TopicPartition partition;
  std::optional<Offset> committed;  ///< of the group
  std::optional<Offset> log_start;  ///< first retained offset; empty when the broker did not say
  std::optional<Offset> log_end;
};

/// Records that retention deleted before they were read: [from, to).
struct Gap {
  TopicPartition partition;
  Offset from;
  Offset to;
};

/// Called by the consumer's thread, never two at a time. None begins once close() or the destructor has returned; one
/// that takes longer than their deadline may still be running then, so what it uses must live on (a close() called by a
/// hook ends none: on_revoke still comes). They may call any function of the consumer except poll(), and must not
/// throw.
struct ConsumerHooks {
  /// Where to start: an offset (what a store has kept), empty for the committed one, or an error, which stops the
  /// consumer. An offset above the committed one is committed at once: the store is ahead of a commit that was lost.
  std::function<Result<std::optional<Offset>>(const AssignedPartition&)> on_assign;
  /// Partitions are about to be given up: handed-out records have been finished or `revoke_drain` has passed; the
  /// finished prefix is committed after this returns. `lost`: they already belong to somebody else, nothing can be
  /// committed.
  std::function<void(const std::vector<TopicPartition>&, bool lost)> on_revoke;
  /// Retention deleted these before they were read, and reading goes on behind them (GapPolicy::kEarliest). What was in
  /// memory by then is handed out first and is no part of it. When partitions are assigned it comes after on_assign.
  std::function<void(const Gap&)> on_gap;
};

/// One assigned partition.
struct PartitionStats {
  std::optional<Offset> committed;  ///< acknowledged by the coordinator in this assignment
  Offset position;                  ///< next to be handed out, control records included
  std::optional<Offset> log_end;    ///< last known (stable) end of the log
  /// Log end minus the finished prefix; empty while unknown; never negative.
  std::optional<std::int64_t> lag;
  std::size_t unfinished = 0;  ///< handed out, not finished
  bool held = false;           ///< by the watermark or by hold()
};

/// Counted from open() on.
struct ConsumerStats {
  std::uint64_t fetched = 0;   ///< handed out by poll()
  std::uint64_t finished = 0;  ///< by finish() or commit()
  /// finish() of an assignment that is over, commit() of a partition that is not ours: not counted as finished
  std::uint64_t fenced = 0;
  std::uint64_t commits = 0;         ///< requests the coordinator confirmed
  std::uint64_t commits_failed = 0;  ///< requests refused or not answered in time; their offsets go again
  std::uint64_t holds = 0;           ///< times a partition reached the high watermark
  std::uint64_t rebalances = 0;      ///< times partitions (or none) were assigned, or lost
  std::uint64_t gaps = 0;            ///< calls of on_gap, also without the hook
  std::uint64_t skipped = 0;         ///< records lost to gaps
  Bytes handed_out_bytes = 0;        ///< handed out, not finished
  std::map<TopicPartition, PartitionStats> partitions;  ///< the assigned ones
};

class ConsumerCore;  // internal

/// One member of one group. See the top of this file for threads and guarantees.
class Consumer {
 public:
  /// Joins in the background: succeeds without a broker. Fails on settings the client library refuses.
  static Result<std::unique_ptr<Consumer>> open(const ConsumerSettings& settings, ConsumerHooks hooks = {});
  /// Around a core built by hand (tests): `threaded` false starts no thread, the test drives the core.
  Consumer(std::shared_ptr<ConsumerCore> core, bool threaded);
  /// close() with a deadline of zero when it was not called.
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// Up to `max_poll_records` records, waiting up to `wait` for the first; empty when none came. In order within a
  /// partition; partitions take turns, `first_topics` before the others. One thread at a time: a second one waits until
  /// the first is done, then up to its own `wait`. Fails for good when the consumer is closed or was opened before a
  /// fork() (kClosed), or cannot go on (the reason is in the message).
  Result<std::vector<ConsumedRecord>> poll(Duration wait);

  /// The record has reached its destination. Records may be finished in any order; only the contiguous prefix is
  /// committed. One of an assignment that is over counts as `fenced` and does nothing, one that was finished before
  /// does nothing.
  void finish(const ConsumedRecord& record);
  /// The same for an application that keeps only these three of a record: `assignment` is ConsumedRecord::assignment.
  void finish(const TopicPartition& partition, std::uint64_t assignment, Offset offset);
  /// Everything of the partition before this has been finished; empty when the partition is not assigned.
  std::optional<Offset> finished_prefix(const TopicPartition& partition) const;

  /// Commits `next` (the offset after the last record the store has) and finishes everything before it. Sent at once by
  /// our thread, the highest value per partition wins: one below what was asked for, or below where this assignment
  /// began, is not sent. Fails (kNotFound) when the partition is not assigned. It does not know which assignment `next`
  /// belongs to: where a partition may have left and come back meanwhile, finish() and commit_finished() are fenced.
  Result<void> commit(const TopicPartition& partition, Offset next);
  /// Commits the finished prefix of every partition that moved.
  void commit_finished();
  /// Waits until every commit asked for has been answered, at most `deadline` (kTimeout); fails with the last failure
  /// when nothing was confirmed since. In a hook it does not wait.
  Result<void> flush_commits(Duration deadline);

  /// Nothing more of the partition is handed out until release(), on top of the watermarks; a poll() that another
  /// thread is in may still return some. It ends with the assignment: a partition that comes back starts unheld.
  void hold(const TopicPartition& partition);
  /// Ends hold(); the watermarks may still hold the partition. Wakes a waiting poll().
  void release(const TopicPartition& partition);
  /// Takes back records that poll() handed out and that were not handled (the rest of a batch after hold()). They are
  /// handed out again first, in order. Records of an assignment that is over are dropped: their new owner reads them.
  void give_back(std::vector<ConsumedRecord> records);

  /// The partitions that are read now, those about to be given up included. One that is ours and without a leader is
  /// not among them: it follows when its leader answers.
  std::vector<TopicPartition> assignment() const;
  /// True from the first assignment on, while partitions (or none) are assigned and no rebalance is under way.
  bool assigned() const;
  /// Consistent in itself; all zero after a fork().
  ConsumerStats stats() const;
  /// The settings as the client library has them, with where each comes from; secrets are "(hidden)".
  std::vector<SettingInForce> in_force() const;

  /// Hands out nothing more, commits the finished prefix once, leaves the group if it can be reached (a static member
  /// stays, as Kafka has it). Returns within the deadline plus a little, whatever the broker, hooks or handlers do; may
  /// be called from a hook. False when the final commit or the leaving was not confirmed in time.
  bool close(Duration deadline);

 private:
  std::shared_ptr<ConsumerCore> core_;  // shared with our thread: a stuck hook must not hang the owner
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir
