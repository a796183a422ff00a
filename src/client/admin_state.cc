#include "client/admin_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/messages/10_find_coordinator.h"
#include "protocol/messages/3_metadata.h"
#include "wire/uuid.h"

namespace weir::client {

using protocol::ErrorCode;

namespace {
constexpr Duration kShun = std::chrono::seconds(5);
}

void Admin::State::interrupt() {
  std::lock_guard lock(mutex_);
  interrupted_ = true;
  wake_.notify_all();
}

bool Admin::State::pause_before_retry(MonoTime deadline) {
  constexpr Duration kPause = std::chrono::milliseconds(100);
  if (system_clock().now().mono + kPause >= deadline) return false;
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, kPause, [&] { return interrupted_.load(); });
}

Result<AdminLink*> Admin::State::connect(const runtime::Address& address, MonoTime deadline) {
  if (interrupted_) return fail(ErrorKind::kClosed, "stopped");
  auto& link = links_[address];
  if (link && !link->broken()) return link.get();
  auto fresh = AdminLink::connect(address, {settings.client_id, settings.max_response, &interrupted_}, deadline);
  if (!fresh) return tl::unexpected(fresh.error());
  link = std::move(*fresh);
  return link.get();
}

Result<AdminLink*> Admin::State::any(MonoTime deadline) {
  const auto usable = [](const auto& entry) { return entry.second && !entry.second->broken(); };
  auto live = links_.find(preferred_);
  if (live == links_.end() || !usable(*live)) live = std::find_if(links_.begin(), links_.end(), usable);
  if (live != links_.end()) return live->second.get();
  auto addresses = runtime::parse_addresses(settings.bootstrap, 9092);
  if (!addresses) return tl::unexpected(addresses.error());
  Result<AdminLink*> last = fail(ErrorKind::kInvalid, "bootstrap names no address");
  // Once bootstrapped, other brokers may be up when those of the list are not.
  for (const auto& [node, address] : brokers) addresses->push_back(address);
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    const MonoTime now = system_clock().now().mono;
    last = connect((*addresses)[i], now + (deadline - now) / static_cast<std::int64_t>(addresses->size() - i));
    if (last || last.error().kind == ErrorKind::kClosed) return last;
  }
  return last;
}

Result<AdminLink*> Admin::State::broker(int node, MonoTime deadline) {
  const auto known = brokers.find(node);
  if (known == brokers.end())
    return fail(ErrorKind::kUnavailable, fmt::format("broker {} is not in the metadata", node));
  if (is_unreachable(node)) return tl::unexpected(unreachable_.at(known->second).why);
  const MonoTime now = system_clock().now().mono;
  // Half of the time at most: whoever else is asked in the same call needs the rest.
  auto link = connect(known->second, now + (deadline - now) / 2);
  if (link) {
    unreachable_.erase(known->second);
  } else if (link.error().kind != ErrorKind::kClosed) {
    unreachable_.insert_or_assign(known->second, Unreachable{link.error(), now + kShun});
  }
  return link;
}

bool Admin::State::is_unreachable(int node) const {
  const auto known = brokers.find(node);
  if (known == brokers.end()) return false;
  const auto shunned = unreachable_.find(known->second);
  return shunned != unreachable_.end() && system_clock().now().mono < shunned->second.until;
}

Result<ClusterDescription> Admin::State::refresh(Which which, const std::vector<std::string>& names,
                                                 std::vector<TopicDescription>* topics, MonoTime deadline) {
  auto link = any(deadline);
  if (!link) return tl::unexpected(link.error());
  protocol::MetadataRequest request{.allow_auto_topic_creation = false};
  if (which == Which::kNamed) {
    request.topics.emplace();
    for (const auto& name : names) request.topics->push_back({.name = name});
  }
  // Before version 4 a broker creates the topics it is asked about.
  auto version = (*link)->version<protocol::MetadataRequest>(protocol::kOpenEnd, 4);
  if (!version) return tl::unexpected(version.error());
  auto response = (*link)->ask(request, deadline);
  if (!response) return tl::unexpected(response.error());
  if (response->error_code != ErrorCode::kNone) {
    return tl::unexpected(refused((*link)->address(), protocol::ApiKey::kMetadata, response->error_code));
  }
  preferred_ = (*link)->peer();
  ClusterDescription cluster{response->cluster_id.value_or(""), NodeId(response->controller_id), {}};
  controller = response->controller_id;
  brokers.clear();
  for (const auto& broker : response->brokers) {
    const auto port = static_cast<std::uint16_t>(broker.port);
    brokers[broker.node_id] = {broker.host, port};
    cluster.brokers.push_back({NodeId(broker.node_id), broker.host, port});
  }
  for (const auto& topic : response->topics) {
    if (!topic.name) continue;
    if (topic.error_code == ErrorCode::kUnknownTopicOrPartition ||
        topic.error_code == ErrorCode::kInvalidTopicException) {
      continue;
    }
    if (topic.error_code != ErrorCode::kNone && topic.error_code != ErrorCode::kLeaderNotAvailable) {
      return tl::unexpected(refused((*link)->address(), protocol::ApiKey::kMetadata, topic.error_code, topic.name));
    }
    TopicDescription description{
        *topic.name, topic.topic_id.is_zero() ? "" : wire::to_string(topic.topic_id), topic.is_internal, {}};
    for (const auto& partition : topic.partitions) {
      description.partitions.push_back({PartitionId(partition.partition_index), NodeId(partition.leader_id)});
      leaders[{*topic.name, PartitionId(partition.partition_index)}] = partition.leader_id;
    }
    std::sort(description.partitions.begin(), description.partitions.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    if (topics != nullptr) topics->push_back(std::move(description));
  }
  return cluster;
}

std::map<std::string, Result<int>> Admin::State::find_coordinators(const std::vector<std::string>& groups,
                                                                   MonoTime deadline) {
  using Request = protocol::FindCoordinatorRequest;
  std::map<std::string, Result<int>> out;
  std::vector<std::string> todo;
  for (const auto& group : groups) {
    const auto known = coordinators.find(group);
    if (known != coordinators.end()) {
      out.insert_or_assign(group, known->second);
    } else {
      todo.push_back(group);
    }
  }
  while (!todo.empty()) {
    std::vector<std::string> again;
    const auto give_up = [&](std::span<const std::string> names, const Error& why) {
      for (const auto& name : names) out.insert_or_assign(name, tl::unexpected(why));
    };
    const auto learn = [&](const std::string& address, const std::string& group, ErrorCode code,
                           const std::optional<std::string>& message, int node, const std::string& host, int port) {
      if (code == ErrorCode::kNone) {
        brokers[node] = {host, static_cast<std::uint16_t>(port)};
        coordinators[group] = node;
        out.insert_or_assign(group, node);
        return;
      }
      out.insert_or_assign(group, tl::unexpected(refused(address, protocol::ApiKey::kFindCoordinator, code, message)));
      if (protocol::is_retriable(code)) again.push_back(group);
    };
    std::span<const std::string> rest(todo);
    while (!rest.empty()) {
      auto link = any(deadline);
      if (!link) {
        give_up(rest, link.error());
        break;
      }
      const bool batched = (*link)->version<Request>(protocol::kOpenEnd, 4).has_value();
      const auto batch = rest.subspan(0, batched ? std::min<std::size_t>(rest.size(), 500) : 1);
      rest = rest.subspan(batch.size());
      Request request;
      if (batched) {
        request.coordinator_keys.assign(batch.begin(), batch.end());
      } else {
        request.key = batch.front();
      }
      const auto response = (*link)->ask(request, deadline);
      if (!response) {
        give_up(batch, response.error());
        continue;
      }
      if (!batched) {
        learn((*link)->address(), batch.front(), response->error_code, response->error_message, response->node_id,
              response->host, response->port);
      }
      for (const auto& c : response->coordinators) {
        learn((*link)->address(), c.key, c.error_code, c.error_message, c.node_id, c.host, c.port);
      }
    }
    todo = std::move(again);
    if (!todo.empty() && !pause_before_retry(deadline)) break;
  }
  return out;
}

}  // namespace weir::client
