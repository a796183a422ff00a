// FindCoordinator: this broker, for every group; nobody for transactions, which are not served yet.
#include "protocol/messages/10_find_coordinator.h"

#include <fmt/format.h>

#include <utility>

#include "broker/core.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

using protocol::ErrorCode;

namespace {

using Coordinator = protocol::FindCoordinatorResponse::Coordinator;
enum KeyType : std::int8_t { kGroup = 0, kTransaction = 1, kShare = 2 };

Coordinator refused(std::string key, ErrorCode error, std::string why) {
  return {std::move(key), -1, "", -1, error, std::move(why)};
}

// Clients must give up at once and show the message. librdkafka, which goes up to version 2, would retry most errors
// for ever, but not this one; Java, from version 4, shows the message only with an error it does not expect.
ErrorCode transactions_refused(std::int16_t version) {
  return version < 4 ? ErrorCode::kTransactionalIdAuthorizationFailed : ErrorCode::kUnsupportedVersion;
}

Coordinator find(Core& core, const Request& request, std::int8_t type, const std::string& key) {
  switch (type) {
    case kGroup:
      if (!core.ensure_offsets_topic()) {
        return refused(key, ErrorCode::kCoordinatorNotAvailable,
                       "The topic __consumer_offsets cannot be created: see the broker's log");
      }
      return {key, core.config().node_id, core.endpoint().host, core.endpoint().port, ErrorCode::kNone, std::nullopt};
    case kTransaction:
      core.warn("clients wanting transactions", fmt::format("client '{}' from {} wants transactions (transactional.id "
                                                            "'{}'): not supported yet, remove transactional.id",
                                                            request.client_id, request.client_host, key));
      return refused(key, transactions_refused(request.version),
                     "This broker does not support transactions yet: remove transactional.id");
    default: return refused(key, ErrorCode::kInvalidRequest, "This broker has no coordinator for this type of key");
  }
}

}  // namespace

void handle_find_coordinator(Core& core, const Request& request) {
  const auto& message = request.as<protocol::FindCoordinatorRequest>();
  protocol::FindCoordinatorResponse response;
  if (request.version >= 4) {
    for (const auto& key : message.coordinator_keys) {
      response.coordinators.push_back(find(core, request, message.key_type, key));
    }
  } else {
    Coordinator found = find(core, request, message.key_type, message.key);
    response.error_code = found.error_code;
    response.error_message = std::move(found.error_message);
    response.node_id = found.node_id;
    response.host = std::move(found.host);
    response.port = found.port;
  }
  core.reply(request.id, respond(std::move(response)));
}

}  // namespace weir::broker
