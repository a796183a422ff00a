// DescribeClientQuotas: the quotas that pass a filter.
#include "broker/core.h"
#include "broker/handlers/handler.h"
#include "broker/quota_admin.h"

namespace weir::broker {

void handle_describe_client_quotas(Core& core, const Request& request) {
  const auto& message = request.as<protocol::DescribeClientQuotasRequest>();
  core.reply(request.id, respond(describe_quotas(core.quotas(), message)));
}

}  // namespace weir::broker
