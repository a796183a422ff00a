// The records of __consumer_offsets: committed offsets and classic groups. Keys: encode_key(), values:
// encode_versioned().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/field_table.h"
#include "wire/uuid.h"

namespace weir::protocol {

struct OffsetCommitKey {
  static constexpr std::int16_t kRecordType = 1;

  std::string group;
  std::string topic;
  std::int32_t partition = 0;

  WEIR_MESSAGE(OffsetCommitKey,
               valid(0, 0),
               WEIR_FIELD(group, between(0, 0)),
               WEIR_FIELD(topic, between(0, 0)),
               WEIR_FIELD(partition, between(0, 0)))
};

struct OffsetCommitValue {
  std::int64_t offset = 0;
  std::int32_t leader_epoch = -1;
  std::string metadata;
  std::int64_t commit_timestamp = 0;
  std::int64_t expire_timestamp = -1;
  wire::Uuid topic_id;

  WEIR_MESSAGE(OffsetCommitValue,
               valid(0, 4).flexible(4),
               WEIR_FIELD(offset, since(0)),
               WEIR_FIELD(leader_epoch, since(3)),
               WEIR_FIELD(metadata, since(0)),
               WEIR_FIELD(commit_timestamp, since(0)),
               WEIR_FIELD(expire_timestamp, between(1, 1)),
               WEIR_FIELD(topic_id, since(4).tagged(0)))
};

struct GroupMetadataKey {
  static constexpr std::int16_t kRecordType = 2;

  std::string group;

  WEIR_MESSAGE(GroupMetadataKey, valid(0, 0), WEIR_FIELD(group, between(0, 0)))
};

struct GroupMetadataValue {
  struct MemberMetadata {
    std::string member_id;
    std::optional<std::string> group_instance_id;
    std::string client_id;
    std::string client_host;
    std::int32_t rebalance_timeout = -1;
    std::int32_t session_timeout = 0;
    ByteBuffer subscription;
    ByteBuffer assignment;

    WEIR_STRUCT(MemberMetadata,
                WEIR_FIELD(member_id, since(0)),
                WEIR_FIELD(group_instance_id, since(3).nullable(3)),
                WEIR_FIELD(client_id, since(0)),
                WEIR_FIELD(client_host, since(0)),
                WEIR_FIELD(rebalance_timeout, since(1)),
                WEIR_FIELD(session_timeout, since(0)),
                WEIR_FIELD(subscription, since(0)),
                WEIR_FIELD(assignment, since(0)))
  };

  std::string protocol_type;
  std::int32_t generation = 0;
  std::optional<std::string> protocol;
  std::optional<std::string> leader;
  std::int64_t current_state_timestamp = -1;
  std::vector<MemberMetadata> members;

  WEIR_MESSAGE(GroupMetadataValue,
               valid(0, 4).flexible(4),
               WEIR_FIELD(protocol_type, since(0)),
               WEIR_FIELD(generation, since(0)),
               WEIR_FIELD(protocol, since(0).nullable(0)),
               WEIR_FIELD(leader, since(0).nullable(0)),
               WEIR_FIELD(current_state_timestamp, since(2)),
               WEIR_FIELD(members, since(0)))
};

}  // namespace weir::protocol
