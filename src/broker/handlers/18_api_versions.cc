// ApiVersions: what is served, from the api table.
#include "protocol/messages/18_api_versions.h"

#include <algorithm>
#include <string_view>

#include "broker/api_table.h"
#include "broker/core.h"
#include "broker/handlers/handler.h"

namespace weir::broker {
namespace {

/// Features that clients and tools ask for, with the level in force. KIP-848 groups, share groups and transactions v2
/// have levels of their own and are added when they are served.
struct Feature {
  const char* name;
  std::int16_t min;
  std::int16_t max;
  std::int16_t level;
};
constexpr Feature kFeatures[] = {{"metadata.version", 7, 25, 25}};  // 25: 4.0-IV3

constexpr std::int16_t kSoftwareNamed = 3;  // from this version on the client says what it is

/// KIP-511: letters, digits, dots and dashes, the first and the last a letter or digit.
bool is_software_name(std::string_view text) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && letter_or_digit(text.front()) && letter_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter_or_digit(c) || c == '.' || c == '-'; });
}

}  // namespace

void handle_api_versions(Core& core, const Request& request) {
  protocol::ApiVersionsResponse response;
  if (request.message == nullptr) {  // A version from the future: the client reads what we have and asks again.
    const Api& self = *find_api(static_cast<std::int16_t>(protocol::ApiKey::kApiVersions));
    response.error_code = protocol::ErrorCode::kUnsupportedVersion;
    response.api_keys.push_back({static_cast<std::int16_t>(self.key), self.advertised.first, self.advertised.last});
    core.reply(request.id, respond(std::move(response)));
    return;
  }
  if (const auto& asked = request.as<protocol::ApiVersionsRequest>();
      request.version >= kSoftwareNamed &&
      (!is_software_name(asked.client_software_name) || !is_software_name(asked.client_software_version))) {
    response.error_code = protocol::ErrorCode::kInvalidRequest;
    core.reply(request.id, respond(std::move(response)));
    return;
  }
  for (const Api& api : apis()) {
    response.api_keys.push_back({static_cast<std::int16_t>(api.key), api.advertised.first, api.advertised.last});
  }
  for (const Feature& feature : kFeatures) {
    response.supported_features.push_back({feature.name, feature.min, feature.max});
    response.finalized_features.push_back({feature.name, feature.level, feature.level});
  }
  response.finalized_features_epoch = 0;
  core.reply(request.id, respond(std::move(response)));
}

}  // namespace weir::broker
