// IncrementalAlterConfigs: set, delete, append to or subtract from single settings of topics and of the broker.
#include "protocol/messages/44_incremental_alter_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "broker/core.h"
#include "broker/handlers/handler.h"
#include "broker/topic_config.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using protocol::IncrementalAlterConfigsRequest;
using protocol::IncrementalAlterConfigsResponse;
using Resource = IncrementalAlterConfigsRequest::AlterConfigsResource;
using Alteration = IncrementalAlterConfigsRequest::AlterableConfig;

enum Operation : std::int8_t { kSet = 0, kDelete = 1, kAppend = 2, kSubtract = 3 };

struct Refusal {
  ErrorCode error;
  std::string message;
};
template <typename T>
using Outcome = tl::expected<T, Refusal>;
tl::unexpected<Refusal> refused(ErrorCode error, std::string message) {
  return tl::unexpected(Refusal{error, std::move(message)});
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at < list.size();) {
    const auto comma = std::min(list.find(',', at), list.size());
    if (comma > at) items.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return items;
}

std::string edited(const std::string& current, const std::string& operand, bool append) {
  auto items = split(current);
  for (const auto& item : split(operand)) {
    std::erase(items, item);
    if (append) items.push_back(item);
  }
  return fmt::format("{}", fmt::join(items, ","));
}

/// The value after the alteration; nothing inside when the setting goes back to its default.
Outcome<std::optional<std::string>> new_value(const Alteration& alteration, BrokerConfig::Type type,
                                              const std::string& current) {
  switch (alteration.config_operation) {
    case kDelete: return std::nullopt;
    case kSet:
    case kAppend:
    case kSubtract: break;
    default:
      return refused(ErrorCode::kInvalidRequest, fmt::format("Unknown operation type {}", alteration.config_operation));
  }
  if (!alteration.value) {
    return refused(ErrorCode::kInvalidRequest, fmt::format("Null value not supported for: {}", alteration.name));
  }
  if (alteration.config_operation == kSet) return *alteration.value;
  if (type != BrokerConfig::Type::kList) {
    return refused(ErrorCode::kInvalidConfig,
                   fmt::format("Can't {} to key {} because its type is not LIST.",
                               alteration.config_operation == kAppend ? "APPEND" : "SUBTRACT", alteration.name));
  }
  return edited(current, *alteration.value, alteration.config_operation == kAppend);
}

Outcome<std::vector<MetadataRecord>> alter_topic(Core& core, const Resource& resource) {
  const Topic* topic = core.topics().find(resource.resource_name);
  if (topic == nullptr) {
    return refused(ErrorCode::kUnknownTopicOrPartition,
                   fmt::format("The topic '{}' does not exist.", resource.resource_name));
  }
  std::vector<MetadataRecord> records;
  for (const Alteration& alteration : resource.configs) {
    const TopicSetting* setting = find_topic_setting(alteration.name);
    if (setting == nullptr) {
      return refused(ErrorCode::kInvalidConfig, fmt::format("Unknown topic config name: {}", alteration.name));
    }
    auto value = new_value(alteration, setting->rule.type, topic_setting_value(core.config(), *topic, alteration.name));
    if (!value) return tl::unexpected(value.error());
    if (*value) {
      if (auto fault = topic_setting_fault(alteration.name, **value)) return refused(ErrorCode::kInvalidConfig, *fault);
    }
    records.push_back(ConfigRecord{kTopicResource, topic->name, alteration.name, std::move(*value)});
  }
  return records;
}

Outcome<std::vector<MetadataRecord>> alter_broker(Core& core, const Resource& resource) {
  if (!resource.resource_name.empty() && resource.resource_name != std::to_string(core.config().node_id)) {
    return refused(ErrorCode::kInvalidRequest, fmt::format("Unexpected broker id, expected {}, but received {}",
                                                           core.config().node_id, resource.resource_name));
  }
  std::vector<MetadataRecord> records;
  for (const Alteration& alteration : resource.configs) {
    const auto described = core.config().describe(alteration.name);
    const auto type = described ? described->type : BrokerConfig::Type::kString;
    auto value = new_value(alteration, type, described ? described->value : "");
    if (!value) return tl::unexpected(value.error());
    const auto ok =
        core.config().check_alter(alteration.name, *value ? std::optional<std::string_view>(**value) : std::nullopt);
    if (!ok) {
      const bool bad_value = ok.error().kind == ErrorKind::kInvalid || ok.error().kind == ErrorKind::kNotFound;
      return refused(bad_value ? ErrorCode::kInvalidConfig : ErrorCode::kInvalidRequest, ok.error().message);
    }
    records.push_back(ConfigRecord{kBrokerResource, "", alteration.name, std::move(*value)});
  }
  return records;
}

Outcome<std::vector<MetadataRecord>> decide(Core& core, const Resource& resource) {
  std::set<std::string> names;
  for (const Alteration& alteration : resource.configs) {
    if (!names.insert(alteration.name).second) {
      return refused(ErrorCode::kInvalidRequest,
                     fmt::format("Error due to duplicate config keys: {}", alteration.name));
    }
  }
  switch (resource.resource_type) {
    case kTopicResource: return alter_topic(core, resource);
    case kBrokerResource: return alter_broker(core, resource);
    default:
      return refused(ErrorCode::kInvalidRequest, fmt::format("Unexpected resource type {}.", resource.resource_type));
  }
}

Response refuse(const Request& request, ErrorCode error) {
  IncrementalAlterConfigsResponse response;
  for (const auto& resource : request.as<IncrementalAlterConfigsRequest>().resources) {
    response.responses.push_back(
        {.error_code = error, .resource_type = resource.resource_type, .resource_name = resource.resource_name});
  }
  return respond(std::move(response));
}

}  // namespace

void handle_incremental_alter_configs(Core& core, const Request& request) {
  const auto& alter = request.as<IncrementalAlterConfigsRequest>();
  std::map<std::pair<std::int8_t, std::string>, int> named;
  for (const Resource& resource : alter.resources) ++named[{resource.resource_type, resource.resource_name}];
  IncrementalAlterConfigsResponse response;
  for (const Resource& resource : alter.resources) {
    auto& result = response.responses.emplace_back();
    result.resource_type = resource.resource_type;
    result.resource_name = resource.resource_name;
    auto records = named[{resource.resource_type, resource.resource_name}] > 1
                       ? refused(ErrorCode::kInvalidRequest, "Each resource must appear at most once.")
                       : decide(core, resource);
    if (records && !alter.validate_only && !core.commit(MetadataDecision{std::move(*records), {}})) {
      records = refused(ErrorCode::kKafkaStorageError, "The metadata log cannot be written.");
    }
    if (!records) {
      result.error_code = records.error().error;
      result.error_message = records.error().message;
    }
  }
  core.commit(MetadataDecision{{}, {{request.id, respond(std::move(response)), refuse}}});
}

}  // namespace weir::broker
