// Kafka's rule for coordinators: a request DECIDES {records, answers}; only REPLAYING a record changes state.
//
// How a decision is carried out, by Core::commit, on the core loop and before commit returns unless said otherwise:
//   1. The records are appended as one batch to the log `where` names.
//   2. When the append fails (disk full), nothing is replayed and every answer is replaced by its `refuse`, sent at
//   once.
//   3. Each record is replayed, in order: GroupCoordinator::replay for `__consumer_offsets`, the metadata image
//   (topics,
//      configs, quotas, producer ids) for the metadata log. So the next request already sees the new state. The same
//      replay loads the log at start.
//   4. The answers leave, in order, when the records are durable (later, from Core::synced); at once under page-cache
//      semantics (log.flush.interval.messages = 9223372036854775807). A failed fsync turns them into their `refuse`.
// A decision without records is answered when everything already in that log is durable: use it for reads that must not
// show what a crash could take back (OffsetFetch, DescribeGroups). What may be answered at once (Heartbeat) uses
// Core::reply.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "broker/metadata_record.h"
#include "broker/request.h"
#include "protocol/error_code.h"
#include "weir/types.h"

namespace weir::broker {

/// One answer a decision gives. `request` may be any open request: the one being handled, or one left open earlier (a
/// member waiting in JoinGroup). Ids of requests that are gone (answered, disconnected) are ignored.
struct Answer {
  RequestId request;
  Response response;
  /// Builds the response for when the records could not be made durable. `error` is KAFKA_STORAGE_ERROR for the
  /// metadata log and COORDINATOR_NOT_AVAILABLE for groups.
  Response (*refuse)(const Request& request, protocol::ErrorCode error) = nullptr;
};

/// A record of `__consumer_offsets` in Kafka's format; no value is a tombstone.
struct GroupRecord {
  ByteBuffer key;
  std::optional<ByteBuffer> value;
};

/// For the partition of `__consumer_offsets` that owns the group (Core::group_partition).
struct GroupDecision {
  PartitionId partition;
  std::vector<GroupRecord> records;
  std::vector<Answer> answers;
  std::vector<PartitionId>
      also_read{};  ///< Other partitions of it that the answers speak of: durable before they leave.
};

/// For the metadata log: topics, configs, quotas, producer ids.
struct MetadataDecision {
  std::vector<MetadataRecord> records;
  std::vector<Answer> answers;
};

}  // namespace weir::broker
