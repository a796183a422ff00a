// Fetch: read record batches from partitions, waiting for them if there are too few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"
#include "wire/uuid.h"

namespace weir::protocol {

struct FetchResponse;

struct FetchRequest {
  static constexpr ApiKey kApiKey = ApiKey::kFetch;
  using Response = FetchResponse;

  struct ReplicaState {
    std::int32_t replica_id = -1;
    std::int64_t replica_epoch = -1;

    WEIR_STRUCT(ReplicaState, WEIR_FIELD(replica_id, since(15)), WEIR_FIELD(replica_epoch, since(15)))
  };

  struct FetchPartition {
    std::int32_t partition = 0;
    std::int32_t current_leader_epoch = -1;
    std::int64_t fetch_offset = 0;
    std::int32_t last_fetched_epoch = -1;
    std::int64_t log_start_offset = -1;
    std::int32_t partition_max_bytes = 0;
    wire::Uuid replica_directory_id;
    std::int64_t high_watermark = INT64_MAX;

    WEIR_STRUCT(FetchPartition,
                WEIR_FIELD(partition, since(0)),
                WEIR_FIELD(current_leader_epoch, since(9)),
                WEIR_FIELD(fetch_offset, since(0)),
                WEIR_FIELD(last_fetched_epoch, since(12)),
                WEIR_FIELD(log_start_offset, since(5)),
                WEIR_FIELD(partition_max_bytes, since(0)),
                WEIR_FIELD(replica_directory_id, since(17).tagged(0)),
                WEIR_FIELD(high_watermark, since(18).tagged(1)))
  };

  struct FetchTopic {
    std::string topic;
    wire::Uuid topic_id;
    std::vector<FetchPartition> partitions;

    WEIR_STRUCT(FetchTopic,
                WEIR_FIELD(topic, between(0, 12)),
                WEIR_FIELD(topic_id, since(13)),
                WEIR_FIELD(partitions, since(0)))
  };

  struct ForgottenTopic {
    std::string topic;
    wire::Uuid topic_id;
    std::vector<std::int32_t> partitions;

    WEIR_STRUCT(ForgottenTopic,
                WEIR_FIELD(topic, between(7, 12)),
                WEIR_FIELD(topic_id, since(13)),
                WEIR_FIELD(partitions, since(7)))
  };

  std::optional<std::string> cluster_id;
  std::int32_t replica_id = -1;
  ReplicaState replica_state;
  std::int32_t max_wait_ms = 0;
  std::int32_t min_bytes = 0;
  std::int32_t max_bytes = INT32_MAX;
  std::int8_t isolation_level = 0;
  std::int32_t session_id = 0;
  std::int32_t session_epoch = -1;
  std::vector<FetchTopic> topics;
  std::vector<ForgottenTopic> forgotten_topics_data;
  std::string rack_id;

  WEIR_MESSAGE(FetchRequest,
               valid(4, 18).flexible(12),
               WEIR_FIELD(cluster_id, since(12).nullable(12).tagged(0)),
               WEIR_FIELD(replica_id, between(0, 14)),
               WEIR_FIELD(replica_state, since(15).tagged(1)),
               WEIR_FIELD(max_wait_ms, since(0)),
               WEIR_FIELD(min_bytes, since(0)),
               WEIR_FIELD(max_bytes, since(3)),
               WEIR_FIELD(isolation_level, since(4)),
               WEIR_FIELD(session_id, since(7)),
               WEIR_FIELD(session_epoch, since(7)),
               WEIR_FIELD(topics, since(0)),
               WEIR_FIELD(forgotten_topics_data, since(7)),
               WEIR_FIELD(rack_id, since(11)))
};

struct FetchResponse {
  static constexpr ApiKey kApiKey = ApiKey::kFetch;

  struct EpochEndOffset {
    std::int32_t epoch = -1;
    std::int64_t end_offset = -1;

    WEIR_STRUCT(EpochEndOffset, WEIR_FIELD(epoch, since(12)), WEIR_FIELD(end_offset, since(12)))
  };

  struct LeaderIdAndEpoch {
    std::int32_t leader_id = -1;
    std::int32_t leader_epoch = -1;

    WEIR_STRUCT(LeaderIdAndEpoch, WEIR_FIELD(leader_id, since(12)), WEIR_FIELD(leader_epoch, since(12)))
  };

  struct SnapshotId {
    std::int64_t end_offset = -1;
    std::int32_t epoch = -1;

    WEIR_STRUCT(SnapshotId, WEIR_FIELD(end_offset, since(0)), WEIR_FIELD(epoch, since(0)))
  };

  struct AbortedTransaction {
    std::int64_t producer_id = 0;
    std::int64_t first_offset = 0;

    WEIR_STRUCT(AbortedTransaction, WEIR_FIELD(producer_id, since(4)), WEIR_FIELD(first_offset, since(4)))
  };

  struct PartitionData {
    std::int32_t partition_index = 0;
    ErrorCode error_code = ErrorCode::kNone;
    std::int64_t high_watermark = 0;
    std::int64_t last_stable_offset = -1;
    std::int64_t log_start_offset = -1;
    EpochEndOffset diverging_epoch;
    LeaderIdAndEpoch current_leader;
    SnapshotId snapshot_id;
    std::optional<std::vector<AbortedTransaction>> aborted_transactions;
    std::int32_t preferred_read_replica = -1;
    std::optional<Payload> records;

    WEIR_STRUCT(PartitionData,
                WEIR_FIELD(partition_index, since(0)),
                WEIR_FIELD(error_code, since(0)),
                WEIR_FIELD(high_watermark, since(0)),
                WEIR_FIELD(last_stable_offset, since(4)),
                WEIR_FIELD(log_start_offset, since(5)),
                WEIR_FIELD(diverging_epoch, since(12).tagged(0)),
                WEIR_FIELD(current_leader, since(12).tagged(1)),
                WEIR_FIELD(snapshot_id, since(12).tagged(2)),
                WEIR_FIELD(aborted_transactions, since(4).nullable(4)),
                WEIR_FIELD(preferred_read_replica, since(11)),
                WEIR_FIELD(records, since(0).nullable(0)))
  };

  struct FetchableTopicResponse {
    std::string topic;
    wire::Uuid topic_id;
    std::vector<PartitionData> partitions;

    WEIR_STRUCT(FetchableTopicResponse,
                WEIR_FIELD(topic, between(0, 12)),
                WEIR_FIELD(topic_id, since(13)),
                WEIR_FIELD(partitions, since(0)))
  };

  struct NodeEndpoint {
    std::int32_t node_id = 0;
    std::string host;
    std::int32_t port = 0;
    std::optional<std::string> rack;

    WEIR_STRUCT(NodeEndpoint,
                WEIR_FIELD(node_id, since(16)),
                WEIR_FIELD(host, since(16)),
                WEIR_FIELD(port, since(16)),
                WEIR_FIELD(rack, since(16).nullable(16)))
  };

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::int32_t session_id = 0;
  std::vector<FetchableTopicResponse> responses;
  std::vector<NodeEndpoint> node_endpoints;

  WEIR_MESSAGE(FetchResponse,
               valid(4, 18).flexible(12),
               WEIR_FIELD(throttle_time_ms, since(1)),
               WEIR_FIELD(error_code, since(7)),
               WEIR_FIELD(session_id, since(7)),
               WEIR_FIELD(responses, since(0)),
               WEIR_FIELD(node_endpoints, since(16).tagged(0)))
};

}  // namespace weir::protocol
