// Metadata: the broker and its topics; may create them.
#include "protocol/messages/3_metadata.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "broker/core.h"
#include "broker/handlers/authorized_operations.h"
#include "broker/handlers/handler.h"
#include "broker/new_topic.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using protocol::MetadataRequest;
using protocol::MetadataResponse;
using TopicResponse = MetadataResponse::MetadataResponseTopic;

constexpr int kFirstWithCreationFlag = 4;
constexpr int kFirstWithIds = 10;

TopicResponse describe(const Core& core, const Topic& topic, bool operations) {
  const std::int32_t node = core.config().node_id;
  TopicResponse response{.name = topic.name, .topic_id = topic.id, .is_internal = topic.name == kOffsetsTopic};
  if (operations) response.topic_authorized_operations = kTopicOperations;
  for (std::int32_t i = 0; i < topic.partitions; ++i) {
    response.partitions.push_back(
        {.partition_index = i, .leader_id = node, .leader_epoch = 0, .replica_nodes = {node}, .isr_nodes = {node}});
  }
  return response;
}

/// Creates the topic, as Kafka does for a client that asks for one it does not find.
ErrorCode create(Core& core, const std::string& name) {
  if (name == kOffsetsTopic) return core.ensure_offsets_topic() ? ErrorCode::kNone : ErrorCode::kKafkaStorageError;
  NewTopic topic{.name = name};
  if (const auto refusal = check_new_topic(core.config(), core.topics(), topic)) {
    if (refusal->error != ErrorCode::kInvalidTopicException)
      core.warn("refused topics", fmt::format("topic '{}' is not created: {}", name, refusal->message));
    return refusal->error;
  }
  return core.commit(MetadataDecision{records_of(topic), {}}) ? ErrorCode::kNone : ErrorCode::kKafkaStorageError;
}

TopicResponse by_name(Core& core, const std::string& name, bool may_create, bool operations) {
  const Topic* topic = core.topics().find(name);
  if (topic != nullptr) return describe(core, *topic, operations);
  TopicResponse response{
      .error_code = ErrorCode::kUnknownTopicOrPartition, .name = name, .is_internal = name == kOffsetsTopic};
  if (topic_name_fault(name)) {
    response.error_code = ErrorCode::kInvalidTopicException;
  } else if (may_create) {
    response.error_code = create(core, name);
    if (response.error_code == ErrorCode::kNone) return describe(core, *core.topics().find(name), operations);
  }
  return response;
}

TopicResponse by_id(Core& core, const TopicId& id, bool operations) {
  const Topic* topic = core.topics().find(id);
  if (topic != nullptr) return describe(core, *topic, operations);
  return {.error_code = ErrorCode::kUnknownTopicId, .name = std::nullopt, .topic_id = id};
}

Response refuse(const Request& request, ErrorCode error) {
  MetadataResponse response{.error_code = error};
  for (const auto& topic :
       request.as<MetadataRequest>().topics.value_or(std::vector<MetadataRequest::MetadataRequestTopic>())) {
    response.topics.push_back({.error_code = error, .name = topic.name, .topic_id = topic.topic_id});
  }
  return respond(std::move(response));
}

}  // namespace

void handle_metadata(Core& core, const Request& request) {
  const auto& metadata = request.as<MetadataRequest>();
  MetadataResponse response{.cluster_id = core.cluster_id(), .controller_id = core.config().node_id};
  response.brokers.push_back(
      {.node_id = core.config().node_id, .host = core.endpoint().host, .port = core.endpoint().port});
  const bool operations = metadata.include_topic_authorized_operations;
  if (metadata.include_cluster_authorized_operations) response.cluster_authorized_operations = kClusterOperations;
  const bool all = !metadata.topics || (request.version == 0 && metadata.topics->empty());
  if (all) {
    for (const auto& [name, topic] : core.topics().all()) response.topics.push_back(describe(core, topic, operations));
  } else {
    const bool may_create = core.config().auto_create_topics_enable &&
                            (metadata.allow_auto_topic_creation || request.version < kFirstWithCreationFlag);
    // Once each, as in Kafka: thousands of partitions may stand behind a short name.
    std::set<std::string_view> names;
    std::set<TopicId> ids;
    for (const auto& topic : *metadata.topics) {
      const bool id_given = request.version >= kFirstWithIds && !topic.name;
      const std::string_view name = topic.name ? std::string_view(*topic.name) : std::string_view();
      if (id_given ? !ids.insert(topic.topic_id).second : !names.insert(name).second) continue;
      response.topics.push_back(id_given ? by_id(core, topic.topic_id, operations)
                                         : by_name(core, topic.name.value_or(""), may_create, operations));
    }
  }
  // A topic that was just created is shown once it is durable.
  core.commit(MetadataDecision{{}, {{request.id, respond(std::move(response)), refuse}}});
}

}  // namespace weir::broker
