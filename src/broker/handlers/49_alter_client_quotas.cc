// AlterClientQuotas: in force for the next request, answered when durable.
#include <utility>

#include "broker/core.h"
#include "broker/handlers/handler.h"
#include "broker/quota_admin.h"

namespace weir::broker {

using protocol::AlterClientQuotasRequest;
using protocol::AlterClientQuotasResponse;

namespace {

Response refuse(const Request& request, protocol::ErrorCode error) {
  AlterClientQuotasResponse response;
  for (const auto& entry : request.as<AlterClientQuotasRequest>().entries) {
    auto& answer = response.entries.emplace_back();
    answer.error_code = error;
    for (const auto& part : entry.entity) answer.entity.push_back({part.entity_type, part.entity_name});
  }
  return respond(std::move(response));
}

}  // namespace

void handle_alter_client_quotas(Core& core, const Request& request) {
  QuotaDecision decision = alter_quotas(core.quotas(), request.as<AlterClientQuotasRequest>());
  core.commit({std::move(decision.records), {{request.id, respond(std::move(decision.response)), refuse}}});
}

}  // namespace weir::broker
