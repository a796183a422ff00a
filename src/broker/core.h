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

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "broker/broker_config.h"
#include "broker/decision.h"
#include "broker/effects.h"
#include "broker/request.h"
#include "broker/topics.h"

namespace weir::broker {

class GroupCoordinator;
class Partitions;
class ProducerIds;
class Quotas;

class Core {
 public:
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
  GroupCoordinator& groups() { return *groups_; }
  Quotas& quotas() { return *quotas_; }
  ProducerIds& producer_ids() { return *producer_ids_; }

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

  /// Carries a decision out; see decision.h for what happens when. False when the records could not be appended (the
  /// answers were refused and nothing was replayed).
  bool commit(GroupDecision decision);
  bool commit(MetadataDecision decision);

  /// The partition of `__consumer_offsets` that owns a group: Kafka's abs(hash(group)) % offsets.topic.num.partitions.
  PartitionId group_partition(std::string_view group) const;
  /// Makes sure `__consumer_offsets` exists (FindCoordinator and the group handlers call it first; cheap when it does).
  /// False when it could not be created: answer COORDINATOR_NOT_AVAILABLE.
  bool ensure_offsets_topic();
};

// ---- What the other parts offer the core (each in its own header)
// -----------------------------------------------------
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
//     /// The connection is gone (its open requests are already forgotten).
//     void disconnected(Now now, ConnectionId connection);
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
