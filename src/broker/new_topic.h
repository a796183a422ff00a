// Creating a topic: what Kafka checks, and the records that make it. Used by CreateTopics, by auto creation in Metadata
// and for internal topics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/broker_config.h"
#include "broker/metadata_record.h"
#include "broker/topics.h"
#include "protocol/error_code.h"

namespace weir::broker {

struct NewTopic {
  std::string name;
  std::int32_t partitions = -1;          ///< -1: num.partitions.
  std::int16_t replication_factor = -1;  ///< -1: default.replication.factor.
  /// Brokers of each partition, by partition; empty: the broker decides.
  std::vector<std::pair<std::int32_t, std::vector<std::int32_t>>> assignments;
  std::vector<std::pair<std::string, std::optional<std::string>>> configs;
};

struct TopicRefusal {
  protocol::ErrorCode error;
  std::string message;
};

/// Checks everything and fills in the defaults of `topic`; nothing when it can be created.
std::optional<TopicRefusal> check_new_topic(const BrokerConfig& config, const Topics& topics, NewTopic& topic);

/// The records of a topic that passed the check, with a fresh id.
std::vector<MetadataRecord> records_of(const NewTopic& topic);

}  // namespace weir::broker
