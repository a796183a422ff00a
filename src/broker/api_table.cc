#include "broker/api_table.h"

#include <algorithm>

#include "broker/batch_check.h"
#include "protocol/codec.h"
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

namespace weir::broker {
namespace {

using namespace protocol;  // NOLINT: a table of protocol names

template <typename M>
constexpr Api api(std::int16_t first, std::int16_t last, Handler handler) {
  const Versions served{first, last};
  return {M::kApiKey, served, served, &M::table, &M::Response::table, handler};
}

/// Old clients read "Produce from version 0" as "a broker new enough for message format v2", so Kafka advertises 0 and
/// serves 3; so do we.
constexpr Api from_zero(Api api) {
  api.advertised.first = 0;
  return api;
}

constexpr Api prepared(Api api, std::shared_ptr<const void> (*prepare)(const void*, int)) {
  api.prepare = prepare;
  return api;
}

/// What the elements of a request's arrays may take: the partitions of a Produce, say, whose records are not counted.
/// Six bytes can name a partition and make 600 of it until it is answered, so the size of a request does not bound
/// them. This is 87000 partitions.
constexpr Bytes kMaxElements = 4 * kMiB;
/// What an element costs in all, with what is made and answered of it, in terms of its size.
constexpr Bytes kElementCost = 16;

// Produce 13 and Fetch 13 name topics by id, OffsetCommit 10 and OffsetFetch 10 too: clients negotiate down for now.
constexpr Api kApis[] = {
    prepared(from_zero(api<ProduceRequest>(3, 12, handle_produce)), check_produce),
    api<FetchRequest>(4, 12, handle_fetch),
    api<ListOffsetsRequest>(1, 11, handle_list_offsets),
    api<MetadataRequest>(0, 13, handle_metadata),
    api<OffsetCommitRequest>(2, 9, handle_offset_commit),
    api<OffsetFetchRequest>(1, 9, handle_offset_fetch),
    api<FindCoordinatorRequest>(0, 6, handle_find_coordinator),
    api<JoinGroupRequest>(0, 9, handle_join_group),
    api<HeartbeatRequest>(0, 4, handle_heartbeat),
    api<LeaveGroupRequest>(0, 5, handle_leave_group),
    api<SyncGroupRequest>(0, 5, handle_sync_group),
    api<DescribeGroupsRequest>(0, 6, handle_describe_groups),
    api<ListGroupsRequest>(0, 5, handle_list_groups),
    api<ApiVersionsRequest>(0, 4, handle_api_versions),
    api<CreateTopicsRequest>(2, 7, handle_create_topics),
    api<DeleteTopicsRequest>(1, 6, handle_delete_topics),
    api<InitProducerIdRequest>(0, 5, handle_init_producer_id),
    api<DescribeConfigsRequest>(1, 4, handle_describe_configs),
    api<IncrementalAlterConfigsRequest>(0, 1, handle_incremental_alter_configs),
    api<DescribeClientQuotasRequest>(0, 1, handle_describe_client_quotas),
    api<AlterClientQuotasRequest>(0, 1, handle_alter_client_quotas),
    api<DescribeClusterRequest>(0, 2, handle_describe_cluster),
};

}  // namespace

std::span<const Api> apis() { return kApis; }

const Api* find_api(std::int16_t key) {
  const auto* it =
      std::ranges::lower_bound(kApis, key, {}, [](const Api& api) { return static_cast<std::int16_t>(api.key); });
  return it != std::end(kApis) && static_cast<std::int16_t>(it->key) == key ? it : nullptr;
}

Result<void> decode_request(const Api& api, wire::Reader& body, Request& request) {
  const Table& table = api.request();
  std::shared_ptr<void> message(table.ops->create(), table.ops->destroy);
  Bytes left = kMaxElements;
  if (auto done = decode(table, message.get(), request.version, body, left); !done) return done;
  request.memory = request.size + kElementCost * (kMaxElements - left);
  if (api.prepare != nullptr) request.prepared = api.prepare(message.get(), request.version);
  request.message = std::move(message);
  return {};
}

}  // namespace weir::broker
