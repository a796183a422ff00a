// DescribeClientQuotas and AlterClientQuotas: what is asked, and whether it makes sense. Pure.
#pragma once

#include <vector>

#include "broker/metadata_record.h"
#include "broker/quota.h"
#include "protocol/messages/48_describe_client_quotas.h"
#include "protocol/messages/49_alter_client_quotas.h"

namespace weir::broker {

/// The entities that pass the filter. Each component: exact name, the type's default (no name), or any of the type.
/// Strict: entities with other types than the filter's are left out.
protocol::DescribeClientQuotasResponse describe_quotas(const Quotas& quotas,
                                                       const protocol::DescribeClientQuotasRequest& request);

/// Each entry is taken as a whole or refused with INVALID_REQUEST. Empty `records` with validate_only.
struct QuotaDecision {
  std::vector<MetadataRecord> records;
  protocol::AlterClientQuotasResponse response;
};
QuotaDecision alter_quotas(const Quotas& quotas, const protocol::AlterClientQuotasRequest& request);

}  // namespace weir::broker
