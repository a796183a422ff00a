// The broker without I/O: every request, every passing of time and every finished fsync goes in, effects come out.
//
//   io loops --Request--> handle() --+                       +--> Reply, NoReply, CloseConnection --> io loops
//   timer ---------------> tick()    +--> state of Core ---> +
//   log loops ----------> synced() --+                       +--> Sync, Chore --> log loops --> synced()
//
// Thread rule: everything here belongs to the core loop. The core never blocks: it appends to the page cache, looks
// into indexes, and leaves fdatasync and the sending of file ranges to others.
//
// Requests that cannot be answered yet stay OPEN: they are data in one table, not blocked threads. A handler either
// calls exactly one of reply(), drop(), close(), hands the request to commit() or to a wait below, or keeps its id (a
// member waiting in JoinGroup: then it calls long_poll() and answers by id later). An open request whose connection
// goes away is forgotten; answers to it are ignored.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "broker/broker_config.h"
#include "broker/complaints.h"
#include "broker/decision.h"
#include "broker/durable_waits.h"
#include "broker/effects.h"
#include "broker/partitions.h"
#include "broker/producer_ids.h"
#include "broker/request.h"
#include "broker/timer_wheel.h"
#include "broker/topics.h"
#include "protocol/messages/0_produce.h"
#include "runtime/file.h"

namespace weir::broker {

class GroupCoordinator;
class Quotas;

/// A Produce answer that waits for fsync. `slots[i]` says which partition of `response` waits for `needs[i]`: its
/// answer becomes KAFKA_STORAGE_ERROR when that never is met.
struct ProduceAnswer {
  struct Slot {
    std::size_t topic = 0;
    std::size_t partition = 0;
  };
  std::shared_ptr<protocol::ProduceResponse> response;
  std::vector<Need> needs;
  std::vector<Slot> slots;
  Duration mute{};
};

inline constexpr std::string_view kOffsetsTopic = "__consumer_offsets";

/// What the core counts for the metrics. Written by the core loop, read by any thread.
struct CoreCounts {
  std::atomic<std::uint64_t> produced_bytes{0};
  std::atomic<std::uint64_t> produced_records{0};
  std::atomic<std::uint64_t> fetched_bytes{0};
  std::atomic<std::uint64_t> refused_appends{0};  ///< By the disk.
};

class Core {
 public:
  /// Opens or makes the data directory `config.log_dir` (locked), replays the metadata log, recovers the partitions and
  /// loads the groups. Blocks on the disk. `config` is finished; `files` outlives the core.
  static Result<std::unique_ptr<Core>> open(runtime::FileSystem& files, BrokerConfig config, Now now);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  /// Clean stop, when no Sync is out any more: everything synced and checkpointed. Blocks on the disk; nothing is
  /// called afterwards.
  Result<void> close(Now now);

  // ---- For the loops ------------------------------------------------------------------------------------------------

  Effects handle(Now now, Request request);
  Effects tick(Now now);
  Effects synced(Now now, LogId log, Result<void> outcome);
  Effects disconnected(Now now, ConnectionId connection);
  /// When tick() wants to be called next, if at all.
  std::optional<MonoTime> next_deadline() const;

  /// The address clients are told (Metadata, FindCoordinator): the bound one, or advertised.listeners. Before the first
  /// handle().
  void set_endpoint(HostPort endpoint) { endpoint_ = std::move(endpoint); }

  // ---- For handlers and coordinators --------------------------------------------------------------------------------

  /// The time of the call being handled.
  Now now() const { return now_; }
  const BrokerConfig& config() const { return config_; }
  const HostPort& endpoint() const { return endpoint_; }
  const std::string& cluster_id() const { return cluster_id_; }
  const Topics& topics() const { return topics_; }
  Partitions& partitions() { return *partitions_; }
  CoreCounts& counts() { return counts_; }
  GroupCoordinator& groups() { return *groups_; }
  Quotas& quotas() { return *quotas_; }
  ProducerIds& producer_ids() { return producer_ids_; }
  /// A line about a fault that clients repeat; see Complaints::warn.
  void warn(std::string_view kind, std::string_view line) { complaints_.warn(now_.mono, kind, line); }
  /// The disk refused an append to `log`: counted and, within limits, logged.
  void append_refused(std::string_view log, const Error& error);

  /// The open request with this id; null when it is answered or its connection is gone. A `const Request&` given to a
  /// handler stays valid until the handler returns, also after reply().
  const Request* open(RequestId id) const;

  /// Answers an open request. `mute`: how long its connection is not read afterwards (the response carries the same
  /// time in throttle_time_ms). Ignored when the request is gone.
  void reply(RequestId id, Response response, Duration mute = {});
  /// Ends an open request without an answer (acks=0).
  void drop(RequestId id, Duration mute = {});
  /// Closes the request's connection; its other open requests are forgotten.
  void close(RequestId id, std::string reason);
  /// Says that the open request waits for others (JoinGroup, SyncGroup, Fetch) and must not count against the request
  /// queue.
  void long_poll(RequestId id);

  /// Answers a Produce request when every need is met; the index of a need is the index of its `slots` entry.
  void reply_when_durable(RequestId id, ProduceAnswer answer);
  /// Leaves a Fetch open until more can be shown of these partitions or `deadline` has come; handle_fetch then runs
  /// again (may_wait() is false once the deadline has come).
  void wait_for_records(RequestId id, const std::vector<Partition*>& partitions, MonoTime deadline);
  /// True while the Fetch being handled may wait: always on its first run, later until its deadline.
  bool may_wait(RequestId id) const;
  /// Bytes were appended to the partition: sync it when due, wake readers when they may see it.
  void appended(Partition& partition, std::uint64_t bytes);

  /// Carries a decision out; see decision.h for what happens when. False when the records could not be appended (the
  /// answers were refused and nothing was replayed).
  bool commit(GroupDecision decision);
  bool commit(MetadataDecision decision);

  /// The partition of `__consumer_offsets` that owns a group: Kafka's abs(hash(group)) % offsets.topic.num.partitions.
  PartitionId group_partition(std::string_view group) const;
  /// Makes sure `__consumer_offsets` exists (FindCoordinator and the group handlers call it first; cheap when it does).
  /// False when it could not be created: answer COORDINATOR_NOT_AVAILABLE.
  bool ensure_offsets_topic();

 private:
  struct Open;
  struct Pending;
  struct MetadataState;
  Core(runtime::FileSystem& files, BrokerConfig config, Now now);

  // core.cc
  void begin(Now now);
  Effects end();
  void finish(RequestId id);
  void run_handler(Open& open);
  void wake_fetches(Partition& partition);
  void fetch_due(RequestId id);

  // core_commit.cc: decisions, syncing, answers that wait for it
  template <typename Decision>
  void refuse(const Decision& decision, protocol::ErrorCode error);
  void answer_when(const std::vector<Need>& needs, std::vector<Answer> answers, protocol::ErrorCode on_failure);
  void add_metadata_need(std::vector<Need>& needs) const;
  static bool add_need(const Partition& partition, std::vector<Need>& needs);
  void settle(const std::vector<DurableWaits::Settled>& settled);
  void replay(const MetadataRecord& record);
  void advanced(Partition& partition);
  void start_syncs();
  Result<void> set_aside_strays(std::string_view topic);
  void metadata_synced(const Result<void>& outcome);
  void partition_synced(Partition& partition, const Result<void>& outcome);

  // core_offsets.cc: keeping __consumer_offsets small
  void shrink(Partition& partition);
  Result<void> append_snapshot(Partition& partition, const std::vector<GroupRecord>& records);
  void snapshot_durable(Partition& partition);

  // core_start.cc: loading
  Result<void> load_metadata();
  Result<void> rewrite_metadata();
  Result<void> open_partitions();
  Result<void> load_groups();
  Result<void> load_group_partition(Partition& partition);
  Duration retention_period() const;
  void retain();

  runtime::FileSystem& files_;
  Now now_;
  BrokerConfig config_;
  HostPort endpoint_;
  std::string cluster_id_;
  Topics topics_;
  ProducerIds producer_ids_;
  std::unique_ptr<Quotas> quotas_;
  std::unique_ptr<GroupCoordinator> groups_;
  std::unique_ptr<storage::LogDirectory> directory_;
  std::unique_ptr<Partitions> partitions_;
  std::unique_ptr<MetadataState> metadata_;

  std::unordered_map<RequestId, std::unique_ptr<Open>> open_;
  std::vector<std::unique_ptr<Open>> finished_;  // kept until the call returns, so that handlers may still read them
  TimerWheel fetch_deadlines_;
  std::vector<LogId> dirty_;  // partitions that may be due for a sync
  DurableWaits waits_;
  std::unordered_map<DurableWaits::Ticket, Pending> pending_;
  bool checkpoint_out_ = false;
  bool checkpoint_due_ = false;  // worth asking the directory
  /// Partitions were renamed away, perhaps by an earlier process: that must be durable before their topic's end is.
  bool removals_unsynced_ = true;
  std::set<std::string> deleted_topics_;  // while loading
  CoreCounts counts_;
  Complaints complaints_;
  MonoTime next_retention_{};
  Effects effects_;
};

// ---- What the other parts offer the core, in short: their own headers say it in full
// (group/coordinator.h, quota.h)
//
// group/coordinator.h
//   class GroupCoordinator {
//     explicit GroupCoordinator(Core& core);
//     /// State changes only here: while loading at start, and from Core::commit. `timestamp` is the record's.
//     void replay(PartitionId partition, ByteView key, std::optional<ByteView> value, WallTime timestamp);
//     /// Everything is replayed; timers (sessions of the members found) start now.
//     void loaded(Now now);
//     /// Session timeouts, rebalance deadlines, offset expiry. Called by Core::tick.
//     void tick(Now now);
//     std::optional<MonoTime> next_deadline() const;
//     /// For metrics and tests: by id.
//     const std::map<std::string, Group, std::less<>>& groups() const;
//     /// A topic was deleted: its committed offsets go too (commit tombstones).
//     void topic_deleted(std::string_view topic);
//   };
// quota.h
//   class Quotas {
//     explicit Quotas(const BrokerConfig& config);
//     void replay(const QuotaRecord& record);
//     /// Counts `bytes` of a Produce request and returns how long to mute (0: within quota).
//     Duration produced(Now now, const Request& request, Bytes bytes);
//     /// The same for a Fetch answer about to be sent. Not 0: the handler sends no records and takes the bytes back.
//     Duration fetched(Now now, const Request& request, Bytes bytes);
//     void unfetched(Now now, const Request& request, Bytes bytes);
//   };
// quota.h never sees a Core; the handlers 48 and 49 read Quotas and commit a MetadataDecision of QuotaRecords.

}  // namespace weir::broker
