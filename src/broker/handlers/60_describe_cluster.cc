// DescribeCluster: the one broker there is.
#include "protocol/messages/60_describe_cluster.h"

#include "broker/core.h"
#include "broker/handlers/authorized_operations.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_describe_cluster(Core& core, const Request& request) {
  constexpr std::int8_t kBrokers = 1;
  const auto& describe = request.as<protocol::DescribeClusterRequest>();
  protocol::DescribeClusterResponse response{.cluster_id = core.cluster_id()};
  if (describe.endpoint_type != kBrokers) {
    response.error_code = protocol::ErrorCode::kMismatchedEndpointType;
    response.error_message = "The request was sent to an endpoint of the wrong type: this one serves brokers";
    core.reply(request.id, respond(std::move(response)));
    return;
  }
  const std::int32_t node = core.config().node_id;
  response.controller_id = node;
  response.brokers.push_back({.broker_id = node, .host = core.endpoint().host, .port = core.endpoint().port});
  if (describe.include_cluster_authorized_operations) response.cluster_authorized_operations = kClusterOperations;
  core.reply(request.id, respond(std::move(response)));
}

}  // namespace weir::broker
