// DescribeConfigs: the settings in force of a topic or of the broker, and where they come from.
#include "protocol/messages/32_describe_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "broker/core.h"
#include "broker/handlers/config_entries.h"
#include "broker/handlers/handler.h"

namespace weir::broker {
namespace {

using protocol::DescribeConfigsRequest;
using protocol::DescribeConfigsResponse;
using protocol::ErrorCode;
using Result = DescribeConfigsResponse::DescribeConfigsResult;

std::vector<ConfigEntry> entries_of(Core& core, const DescribeConfigsRequest::DescribeConfigsResource& resource,
                                    Result& result) {
  const auto fail_with = [&](ErrorCode error, std::string message) {
    result.error_code = error;
    result.error_message = std::move(message);
    return std::vector<ConfigEntry>();
  };
  if (resource.resource_type == kTopicResource) {
    if (auto fault = topic_name_fault(resource.resource_name))
      return fail_with(ErrorCode::kInvalidTopicException, *fault);
    const Topic* topic = core.topics().find(resource.resource_name);
    if (topic == nullptr) {
      return fail_with(ErrorCode::kUnknownTopicOrPartition,
                       fmt::format("The topic '{}' does not exist.", resource.resource_name));
    }
    return topic_entries(core.config(), *topic);
  }
  if (resource.resource_type == kBrokerResource) {
    if (!resource.resource_name.empty() && resource.resource_name != std::to_string(core.config().node_id)) {
      return fail_with(ErrorCode::kInvalidRequest,
                       fmt::format("Unexpected broker id, expected {} or empty string, but received {}",
                                   core.config().node_id, resource.resource_name));
    }
    auto entries = broker_entries(core.config());
    if (resource.resource_name.empty()) {  // The cluster-wide defaults: only what was set while running.
      std::erase_if(entries, [](const ConfigEntry& entry) { return entry.source != kDynamicBroker; });
    }
    return entries;
  }
  return fail_with(ErrorCode::kInvalidRequest, fmt::format("Unsupported resource type: {}", resource.resource_type));
}

}  // namespace

void handle_describe_configs(Core& core, const Request& request) {
  const auto& describe = request.as<DescribeConfigsRequest>();
  DescribeConfigsResponse response;
  std::set<std::pair<std::int8_t, std::string_view>> named;
  for (const auto& resource : describe.resources) {
    if (!named.emplace(resource.resource_type, resource.resource_name).second) continue;
    auto& result = response.results.emplace_back();
    result.resource_type = resource.resource_type;
    result.resource_name = resource.resource_name;
    const auto& keys = resource.configuration_keys;
    for (auto& entry : entries_of(core, resource, result)) {
      if (keys && std::ranges::find(*keys, entry.name) == keys->end()) continue;
      auto& out = result.configs.emplace_back();
      out.name = std::move(entry.name);
      out.value = std::move(entry.value);
      out.read_only = entry.read_only;
      out.config_source = entry.source;
      out.config_type = entry.type;
      if (describe.include_synonyms) {
        for (auto& synonym : entry.synonyms)
          out.synonyms.push_back({std::move(synonym.name), std::move(synonym.value), synonym.source});
      }
      if (describe.include_documentation) out.documentation = std::move(entry.documentation);
    }
  }
  core.reply(request.id, respond(std::move(response)));
}

}  // namespace weir::broker
