#include "broker/new_topic.h"

#include <fmt/format.h>

#include <set>

#include "base/log.h"
#include "broker/topic_config.h"
#include "wire/uuid.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;

constexpr std::int32_t kMaxPartitionsPerRequest = 10000;

std::optional<TopicRefusal> check_assignments(const BrokerConfig& config, NewTopic& topic) {
  const auto refuse = [](ErrorCode error, std::string message) { return TopicRefusal{error, std::move(message)}; };
  if (topic.replication_factor != -1) {
    return refuse(ErrorCode::kInvalidRequest,
                  "A manual partition assignment was specified, but replication factor was not set to -1.");
  }
  if (topic.partitions != -1) {
    return refuse(ErrorCode::kInvalidRequest,
                  "A manual partition assignment was specified, but numPartitions was not set to -1.");
  }
  std::set<std::int32_t> indexes;
  for (const auto& [index, brokers] : topic.assignments) {
    if (!indexes.insert(index).second) {
      return refuse(ErrorCode::kInvalidReplicaAssignment,
                    fmt::format("Found multiple manual partition assignments for partition {}", index));
    }
    if (brokers.empty()) {
      return refuse(ErrorCode::kInvalidReplicaAssignment,
                    "The manual partition assignment includes an empty replica list.");
    }
    std::set<std::int32_t> seen;
    for (const std::int32_t broker : brokers) {
      if (!seen.insert(broker).second) {
        return refuse(ErrorCode::kInvalidReplicaAssignment,
                      fmt::format("The manual partition assignment includes the broker {} more than once.", broker));
      }
      if (broker != config.node_id) {
        return refuse(
            ErrorCode::kInvalidReplicaAssignment,
            fmt::format("The manual partition assignment includes broker {}, but no such broker is registered.",
                        broker));
      }
    }
  }
  std::int32_t expected = 0;
  for (const std::int32_t index : indexes) {
    if (index != expected++) {
      return refuse(ErrorCode::kInvalidReplicaAssignment,
                    "partitions should be a consecutive 0-based integer sequence");
    }
  }
  topic.partitions = static_cast<std::int32_t>(topic.assignments.size());
  topic.replication_factor = 1;
  return std::nullopt;
}

}  // namespace

std::optional<TopicRefusal> check_new_topic(const BrokerConfig& config, const Topics& topics, NewTopic& topic) {
  const auto refuse = [](ErrorCode error, std::string message) { return TopicRefusal{error, std::move(message)}; };
  if (auto fault = topic_name_fault(topic.name)) return refuse(ErrorCode::kInvalidTopicException, *fault);
  if (topics.find(topic.name) != nullptr) {
    return refuse(ErrorCode::kTopicAlreadyExists, fmt::format("Topic '{}' already exists.", topic.name));
  }
  if (const Topic* other = topics.colliding(topic.name)) {
    return refuse(ErrorCode::kInvalidTopicException,
                  fmt::format("Topic '{}' collides with existing topic: {}", topic.name, other->name));
  }
  for (const auto& [name, value] : topic.configs) {
    if (auto fault = topic_setting_fault(name, value ? std::optional<std::string_view>(*value) : std::nullopt)) {
      return refuse(ErrorCode::kInvalidConfig, *fault);
    }
  }
  if (!topic.assignments.empty()) return check_assignments(config, topic);
  if (topic.replication_factor < -1 || topic.replication_factor == 0) {
    return refuse(ErrorCode::kInvalidReplicationFactor,
                  "Replication factor must be larger than 0, or -1 to use the default value.");
  }
  if (topic.partitions < -1 || topic.partitions == 0) {
    return refuse(ErrorCode::kInvalidPartitions, "Number of partitions was set to an invalid non-positive value.");
  }
  if (topic.partitions == -1) topic.partitions = config.num_partitions;
  if (topic.partitions > kMaxPartitionsPerRequest) {
    return refuse(ErrorCode::kPolicyViolation,
                  fmt::format("Excessively large number of partitions per request: {} of at most {}.", topic.partitions,
                              kMaxPartitionsPerRequest));
  }
  const bool by_default = topic.replication_factor == -1;
  if (by_default) topic.replication_factor = static_cast<std::int16_t>(config.default_replication_factor);
  if (topic.replication_factor > 1) {
    if (!config.replication_factor_clamp) {
      return refuse(
          ErrorCode::kInvalidReplicationFactor,
          fmt::format("Unable to replicate the partition {0} time(s): The target replication factor of {0} cannot be "
                      "reached because only 1 broker(s) are registered. {1} or set weir.replication.factor.clamp=true "
                      "on the broker.",
                      topic.replication_factor,
                      by_default ? "Set default.replication.factor=1" : "Use replication factor 1"));
    }
    log::warn("topic '{}': replication factor {} is taken as 1: this broker is a single node", topic.name,
              topic.replication_factor);
    topic.replication_factor = 1;
  }
  return std::nullopt;
}

std::vector<MetadataRecord> records_of(const NewTopic& topic) {
  std::vector<MetadataRecord> records{TopicRecord{topic.name, wire::random_uuid(), topic.partitions}};
  for (const auto& [name, value] : topic.configs) {
    records.push_back(ConfigRecord{kTopicResource, topic.name, name, value});
  }
  return records;
}

}  // namespace weir::broker
