// What the members of a "consumer" group say to each other inside JoinGroup and SyncGroup: use encode_versioned().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct ConsumerProtocolSubscription {
  struct TopicPartition {
    std::string topic;
    std::vector<std::int32_t> partitions;

    WEIR_STRUCT(TopicPartition, WEIR_FIELD(topic, since(1)), WEIR_FIELD(partitions, since(1)))
  };

  std::vector<std::string> topics;
  std::optional<ByteBuffer> user_data;
  std::vector<TopicPartition> owned_partitions;
  std::int32_t generation_id = -1;
  std::optional<std::string> rack_id;

  WEIR_MESSAGE(ConsumerProtocolSubscription,
               valid(0, 3),
               WEIR_FIELD(topics, since(0)),
               WEIR_FIELD(user_data, since(0).nullable(0)),
               WEIR_FIELD(owned_partitions, since(1)),
               WEIR_FIELD(generation_id, since(2)),
               WEIR_FIELD(rack_id, since(3).nullable(3)))
};

struct ConsumerProtocolAssignment {
  struct TopicPartition {
    std::string topic;
    std::vector<std::int32_t> partitions;

    WEIR_STRUCT(TopicPartition, WEIR_FIELD(topic, since(0)), WEIR_FIELD(partitions, since(0)))
  };

  std::vector<TopicPartition> assigned_partitions;
  std::optional<ByteBuffer> user_data;

  WEIR_MESSAGE(ConsumerProtocolAssignment,
               valid(0, 3),
               WEIR_FIELD(assigned_partitions, since(0)),
               WEIR_FIELD(user_data, since(0).nullable(0)))
};

}  // namespace weir::protocol
