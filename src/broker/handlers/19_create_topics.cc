// CreateTopics.
#include "protocol/messages/19_create_topics.h"

#include <map>

#include "broker/core.h"
#include "broker/handlers/config_entries.h"
#include "broker/handlers/handler.h"
#include "broker/new_topic.h"

namespace weir::broker {
namespace {

using protocol::CreateTopicsRequest;
using protocol::CreateTopicsResponse;
using protocol::ErrorCode;
using TopicResult = CreateTopicsResponse::CreatableTopicResult;

NewTopic wanted(const CreateTopicsRequest::CreatableTopic& topic) {
  NewTopic result{topic.name, topic.num_partitions, topic.replication_factor, {}, {}};
  for (const auto& assignment : topic.assignments)
    result.assignments.emplace_back(assignment.partition_index, assignment.broker_ids);
  for (const auto& config : topic.configs) result.configs.emplace_back(config.name, config.value);
  return result;
}

void describe_created(const Core& core, const NewTopic& topic, TopicResult& result) {
  result.num_partitions = topic.partitions;
  result.replication_factor = topic.replication_factor;
  Topic image{.name = topic.name, .partitions = topic.partitions};
  for (const auto& [name, value] : topic.configs) image.configs[name] = *value;
  result.configs.emplace();
  for (const auto& entry : topic_entries(core.config(), image)) {
    result.configs->push_back(
        {.name = entry.name, .value = entry.value, .read_only = false, .config_source = entry.source});
  }
}

Response refuse(const Request& request, ErrorCode error) {
  CreateTopicsResponse response;
  for (const auto& topic : request.as<CreateTopicsRequest>().topics) {
    response.topics.push_back(
        {.name = topic.name, .error_code = error, .error_message = std::string(protocol::message(error))});
  }
  return respond(std::move(response));
}

}  // namespace

void handle_create_topics(Core& core, const Request& request) {
  const auto& create = request.as<CreateTopicsRequest>();
  std::map<std::string, int> named;
  for (const auto& topic : create.topics) ++named[topic.name];
  CreateTopicsResponse response;
  for (const auto& topic : create.topics) {
    auto& result = response.topics.emplace_back();
    result.name = topic.name;
    const auto fail_with = [&](ErrorCode error, std::string message) {
      result.error_code = error;
      result.error_message = std::move(message);
    };
    if (named[topic.name] > 1) {
      fail_with(ErrorCode::kInvalidRequest, "Duplicate topic name.");
      continue;
    }
    NewTopic checked = wanted(topic);
    if (auto refusal = check_new_topic(core.config(), core.topics(), checked)) {
      fail_with(refusal->error, std::move(refusal->message));
      continue;
    }
    if (!create.validate_only) {
      auto records = records_of(checked);
      const TopicId id = std::get<TopicRecord>(records.front()).id;
      if (!core.commit(MetadataDecision{std::move(records), {}})) {
        fail_with(ErrorCode::kKafkaStorageError, "The metadata log cannot be written.");
        continue;
      }
      result.topic_id = id;
    }
    describe_created(core, checked, result);
  }
  core.commit(MetadataDecision{{}, {{request.id, respond(std::move(response)), refuse}}});
}

}  // namespace weir::broker
