#include "protocol/api_tables.h"

#include <algorithm>

#include "protocol/messages/0_produce.h"
#include "protocol/messages/10_find_coordinator.h"
#include "protocol/messages/11_join_group.h"
#include "protocol/messages/12_heartbeat.h"
#include "protocol/messages/13_leave_group.h"
#include "protocol/messages/14_sync_group.h"
#include "protocol/messages/15_describe_groups.h"
#include "protocol/messages/16_list_groups.h"
#include "protocol/messages/18_api_versions.h"
#include "protocol/messages/19_create_topics.h"
#include "protocol/messages/1_fetch.h"
#include "protocol/messages/20_delete_topics.h"
#include "protocol/messages/22_init_producer_id.h"
#include "protocol/messages/2_list_offsets.h"
#include "protocol/messages/32_describe_configs.h"
#include "protocol/messages/3_metadata.h"
#include "protocol/messages/44_incremental_alter_configs.h"
#include "protocol/messages/48_describe_client_quotas.h"
#include "protocol/messages/49_alter_client_quotas.h"
#include "protocol/messages/60_describe_cluster.h"
#include "protocol/messages/8_offset_commit.h"
#include "protocol/messages/9_offset_fetch.h"
#include "protocol/messages/header.h"
#include "protocol/records/consumer_protocol.h"
#include "protocol/records/group_records.h"
#include "protocol/records/producer_snapshot.h"

namespace weir::protocol {
namespace {

template <typename Request>
constexpr ApiTables tables_of() {
  return {Request::kApiKey, &Request::table, &Request::Response::table};
}

constexpr ApiTables kTables[] = {
    tables_of<ProduceRequest>(),
    tables_of<FetchRequest>(),
    tables_of<ListOffsetsRequest>(),
    tables_of<MetadataRequest>(),
    tables_of<OffsetCommitRequest>(),
    tables_of<OffsetFetchRequest>(),
    tables_of<FindCoordinatorRequest>(),
    tables_of<JoinGroupRequest>(),
    tables_of<HeartbeatRequest>(),
    tables_of<LeaveGroupRequest>(),
    tables_of<SyncGroupRequest>(),
    tables_of<DescribeGroupsRequest>(),
    tables_of<ListGroupsRequest>(),
    tables_of<ApiVersionsRequest>(),
    tables_of<CreateTopicsRequest>(),
    tables_of<DeleteTopicsRequest>(),
    tables_of<InitProducerIdRequest>(),
    tables_of<DescribeConfigsRequest>(),
    tables_of<IncrementalAlterConfigsRequest>(),
    tables_of<DescribeClientQuotasRequest>(),
    tables_of<AlterClientQuotasRequest>(),
    tables_of<DescribeClusterRequest>(),
};

}  // namespace

std::span<const ApiTables> api_tables() { return kTables; }

const ApiTables* find_api(std::int16_t key) {
  const auto found = std::ranges::lower_bound(kTables, static_cast<ApiKey>(key), {}, &ApiTables::key);
  return found != std::end(kTables) && found->key == static_cast<ApiKey>(key) ? &*found : nullptr;
}

std::span<const Table* const> other_tables() {
  static const Table* const tables[] = {
      &RequestHeader::table(),
      &ResponseHeader::table(),
      &ConsumerProtocolSubscription::table(),
      &ConsumerProtocolAssignment::table(),
      &OffsetCommitKey::table(),
      &OffsetCommitValue::table(),
      &GroupMetadataKey::table(),
      &GroupMetadataValue::table(),
      &ProducerSnapshot::table(),
  };
  return tables;
}

}  // namespace weir::protocol
