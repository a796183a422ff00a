// DeleteTopics, by name or by id.
#include "protocol/messages/20_delete_topics.h"

#include <map>

#include "broker/core.h"
#include "broker/handlers/handler.h"

namespace weir::broker {
namespace {

using protocol::DeleteTopicsRequest;
using protocol::DeleteTopicsResponse;
using protocol::ErrorCode;
using TopicState = DeleteTopicsRequest::DeleteTopicState;

std::vector<TopicState> wanted(const Request& request) {
  const auto& message = request.as<DeleteTopicsRequest>();
  std::vector<TopicState> topics = message.topics;
  for (const auto& name : message.topic_names) topics.push_back({.name = name});
  return topics;
}

Response refuse(const Request& request, ErrorCode error) {
  DeleteTopicsResponse response;
  for (const auto& topic : wanted(request)) {
    response.responses.push_back({.name = topic.name, .topic_id = topic.topic_id, .error_code = error});
  }
  return respond(std::move(response));
}

}  // namespace

void handle_delete_topics(Core& core, const Request& request) {
  constexpr int kFirstWithDisabledError = 3;
  DeleteTopicsResponse response;
  const auto topics = wanted(request);
  std::map<std::string, int> named;
  for (const auto& topic : topics) ++named[topic.name.value_or("")];
  for (const auto& topic : topics) {
    auto& result = response.responses.emplace_back();
    result.name = topic.name;
    result.topic_id = topic.topic_id;
    const auto fail_with = [&](ErrorCode error, std::string message) {
      result.error_code = error;
      result.error_message = std::move(message);
    };
    if (!core.config().delete_topic_enable) {
      fail_with(
          request.version < kFirstWithDisabledError ? ErrorCode::kInvalidRequest : ErrorCode::kTopicDeletionDisabled,
          "Topic deletion is disabled.");
      continue;
    }
    if (topic.name && !topic.topic_id.is_zero()) {
      fail_with(ErrorCode::kInvalidRequest, "You may not specify both topic name and topic id.");
      continue;
    }
    if (topic.name && named[*topic.name] > 1) {
      fail_with(ErrorCode::kInvalidRequest, "Duplicate topic name.");
      continue;
    }
    const Topic* found = topic.name ? core.topics().find(*topic.name) : core.topics().find(topic.topic_id);
    if (found == nullptr) {
      const auto error = topic.name ? ErrorCode::kUnknownTopicOrPartition : ErrorCode::kUnknownTopicId;
      fail_with(error, std::string(protocol::message(error)));
      continue;
    }
    if (found->name == kOffsetsTopic) {
      fail_with(ErrorCode::kInvalidTopicException,
                "The topic __consumer_offsets cannot be deleted: it holds what all groups have committed.");
      continue;
    }
    result.name = found->name;
    result.topic_id = found->id;
    if (!core.commit(MetadataDecision{{TopicDeletedRecord{found->name, found->id}}, {}})) {
      fail_with(ErrorCode::kKafkaStorageError, "The metadata log cannot be written.");
    }
  }
  core.commit(MetadataDecision{{}, {{request.id, respond(std::move(response)), refuse}}});
}

}  // namespace weir::broker
