// InitProducerId: an id for an idempotent producer, never given out before.
//
// A producer that lost track of its sequence numbers asks again and names its old id and epoch (since version 3). As in
// Kafka, one without a transactional id just gets a new id at epoch 0: only transactions need the old one.
#include "protocol/messages/22_init_producer_id.h"

#include <fmt/format.h>

#include <utility>

#include "broker/core.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

using protocol::ErrorCode;
using protocol::InitProducerIdResponse;

namespace {

Response refuse(const Request&, ErrorCode error) { return respond(InitProducerIdResponse{.error_code = error}); }

}  // namespace

void handle_init_producer_id(Core& core, const Request& request) {
  const auto& message = request.as<protocol::InitProducerIdRequest>();
  if (message.transactional_id) {
    core.warn("clients wanting transactions",
              fmt::format("client '{}' from {} wants transactions (transactional.id '{}'): not supported yet, remove "
                          "transactional.id",
                          request.client_id, request.client_host, *message.transactional_id));
    return core.reply(request.id, refuse(request, ErrorCode::kTransactionalIdAuthorizationFailed));
  }
  if ((message.producer_id < 0) != (message.producer_epoch < 0)) {
    return core.reply(request.id, refuse(request, ErrorCode::kInvalidRequest));
  }
  ProducerIds::Grant grant = core.producer_ids().next();
  MetadataDecision decision;
  if (grant.reserve) decision.records.emplace_back(*grant.reserve);
  decision.answers.push_back({request.id, respond(InitProducerIdResponse{.producer_id = grant.id.value}), refuse});
  core.commit(std::move(decision));
}

}  // namespace weir::broker
