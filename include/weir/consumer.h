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
/// these.
struct ConsumerSettings {
  std::string bootstrap_servers = "127.0.0.1:9092";
  std::string client_id = "weir";
  std::string group_id = "weir";
  std::string group_instance_id;  ///< `group.instance.id`: static member; empty: dynamic
  std::vector<std::string> topics;
  std::vector<std::string> first_topics;  ///< of `topics`: read before the others whenever they have records

  std::size_t max_poll_records = 500;  ///< `max.poll.records`
  std::size_t high_watermark = 1000;   ///< records of one partition handed out and unfinished: hold at this
  std::size_t low_watermark = 500;     ///< and go on at this; 0 <= low < high
  Bytes buffer_memory =
      defaults::kBufferMemory;  ///< bounds prefetch plus what is handed out; the client's limits derive from it

  Bytes fetch_min_bytes = 1;  ///< `fetch.min.bytes`
  /// `fetch.max.wait.ms`. Below Kafka's 500: while a fetch waits for idle partitions, a busy one whose prefetch is
  /// empty waits too.
  Duration fetch_max_wait = std::chrono::milliseconds(100);
  Bytes max_partition_fetch_bytes = 0;                     ///< `max.partition.fetch.bytes`; 0: derived
  Duration session_timeout = std::chrono::seconds(10);     ///< `session.timeout.ms`
  Duration heartbeat_interval = std::chrono::seconds(3);   ///< `heartbeat.interval.ms`
  Duration max_poll_interval = std::chrono::minutes(5);    ///< `max.poll.interval.ms`
  OffsetReset auto_offset_reset = OffsetReset::kEarliest;  ///< `auto.offset.reset`
  GapPolicy gap = GapPolicy::kEarliest;
  bool read_committed = true;  ///< `isolation.level`
  Duration revoke_drain =
      std::chrono::seconds(5);  ///< longest wait for handed-out records when partitions are taken away

  /// Passed to the client library as they are (security settings and the like), librdkafka spelling.
  std::vector<std::pair<std::string, std::string>> passed_through;
};

/// What is known about a partition when it is assigned.
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

/// Called by the consumer's thread, never two at a time, never after close() returned. They may call any function of
/// the consumer except poll().
struct ConsumerHooks {
  /// Where to start: an offset (what a store has kept), empty for the committed one, or an error, which stops the
  /// consumer.
  std::function<Result<std::optional<Offset>>(const AssignedPartition&)> on_assign;
  /// Partitions are about to be given up: handed-out records have been finished or `revoke_drain` has passed; the
  /// finished prefix is committed after this returns. `lost`: they already belong to somebody else, nothing can be
  /// committed.
  std::function<void(const std::vector<TopicPartition>&, bool lost)> on_revoke;
  std::function<void(const Gap&)> on_gap;
};

struct PartitionStats {
  std::optional<Offset> committed;  ///< acknowledged by the coordinator in this assignment
  Offset position;                  ///< next to be handed out, control records included
  std::optional<Offset> log_end;    ///< last known (stable) end of the log
  /// Log end minus the finished prefix; empty while unknown; never negative.
  std::optional<std::int64_t> lag;
  std::size_t unfinished = 0;  ///< handed out, not finished
  bool held = false;           ///< by the watermark or by hold()
};

struct ConsumerStats {
  std::uint64_t fetched = 0;   ///< handed out by poll()
  std::uint64_t finished = 0;  ///< by finish(), commit() or fenced()
  std::uint64_t fenced = 0;    ///< finish() or commit() of an assignment that is over: not counted as finished
  std::uint64_t commits = 0;
  std::uint64_t commits_failed = 0;
  std::uint64_t holds = 0;  ///< times a partition reached the high watermark
  std::uint64_t rebalances = 0;
  std::uint64_t gaps = 0;
  std::uint64_t skipped = 0;                            ///< records lost to gaps
  Bytes handed_out_bytes = 0;                           ///< handed out, not finished
  std::map<TopicPartition, PartitionStats> partitions;  ///< the assigned ones
};

class ConsumerCore;

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
  /// partition. Fails for good when the consumer has stopped (kClosed) or cannot go on (the reason is in the message).
  Result<std::vector<ConsumedRecord>> poll(Duration wait);

  /// The record has reached its destination. Records may be finished in any order; only the contiguous prefix is
  /// committed.
  void finish(const ConsumedRecord& record);
  void finish(const TopicPartition& partition, std::uint64_t assignment, Offset offset);
  /// Everything of the partition before this has been finished; empty when the partition is not assigned.
  std::optional<Offset> finished_prefix(const TopicPartition& partition) const;

  /// Commits `next` (the offset after the last record the store has) and finishes everything before it. Sent at once by
  /// our thread, the latest value per partition wins. Fails (kNotFound) when the partition is not assigned.
  Result<void> commit(const TopicPartition& partition, Offset next);
  /// Commits the finished prefix of every partition that moved.
  void commit_finished();
  /// Waits until every commit asked for has been answered, at most `deadline`; the last failure if there was one.
  Result<void> flush_commits(Duration deadline);

  /// Nothing more of the partition is handed out until release(), until then on top of the watermarks. It ends with the
  /// assignment: a partition that comes back starts unheld.
  void hold(const TopicPartition& partition);
  void release(const TopicPartition& partition);
  /// Takes back records that poll() handed out and that were not handled (the rest of a batch after hold()). They are
  /// handed out again first, in order. Records of an assignment that is over are dropped: their new owner reads them.
  void give_back(std::vector<ConsumedRecord> records);

  std::vector<TopicPartition> assignment() const;
  /// True from the first assignment on, while partitions (or none) are assigned and no rebalance is under way.
  bool assigned() const;
  ConsumerStats stats() const;
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
