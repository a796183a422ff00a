#include "broker/core.h"

#include <algorithm>

#include "base/assert.h"
#include "broker/api_table.h"
#include "broker/core_state.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"
#include "broker/quota.h"

namespace weir::broker {

Core::Core(runtime::FileSystem& files, BrokerConfig config, Now now)
    : files_(files), now_(now), config_(std::move(config)), fetch_deadlines_(now.mono) {
  quotas_ = std::make_unique<Quotas>(config_);
}

Core::~Core() = default;

void Core::begin(Now now) { now_ = now; }

Effects Core::end() {
  start_syncs();
  finished_.clear();
  Effects out;
  out.swap(effects_);
  return out;
}

Effects Core::handle(Now now, Request request) {
  begin(now);
  const RequestId id = request.id;
  WEIR_ASSERT(!open_.contains(id));
  auto& open = open_[id];
  open = std::make_unique<Open>();
  open->request = std::move(request);
  run_handler(*open);
  return end();
}

void Core::run_handler(Open& open) {
  const Api* api = find_api(open.request.api_key);
  WEIR_ASSERT(api != nullptr);
  api->handler(*this, open.request);
}

Effects Core::tick(Now now) {
  begin(now);
  std::vector<std::uint64_t> due;
  fetch_deadlines_.expire(now.mono, due);
  for (const auto id : due) fetch_due(RequestId(id));
  groups_->tick(now);
  if (now.mono >= next_retention_) retain();
  return end();
}

std::optional<MonoTime> Core::next_deadline() const {
  std::optional<MonoTime> next = next_retention_;
  for (const auto& other : {fetch_deadlines_.next(), groups_->next_deadline()}) {
    if (other) next = std::min(*next, *other);
  }
  return next;
}

Effects Core::disconnected(Now now, ConnectionId connection) {
  begin(now);
  std::vector<RequestId> gone;
  for (const auto& [id, open] : open_) {
    if (open->request.connection == connection) gone.push_back(id);
  }
  for (const RequestId id : gone) finish(id);
  return end();
}

const Request* Core::open(RequestId id) const {
  const auto it = open_.find(id);
  return it == open_.end() ? nullptr : &it->second->request;
}

void Core::finish(RequestId id) {
  const auto it = open_.find(id);
  if (it == open_.end()) return;
  for (const LogId log : it->second->watching) {
    if (Partition* partition = partitions_->find(log)) partition->fetches.erase(id);
  }
  fetch_deadlines_.cancel(id.value);
  finished_.push_back(std::move(it->second));
  open_.erase(it);
}

void Core::reply(RequestId id, Response response, Duration mute) {
  const Request* request = open(id);
  if (request == nullptr) return;
  effects_.push_back(Reply{id, request->connection, std::move(response), mute});
  finish(id);
}

void Core::drop(RequestId id, Duration mute) {
  const Request* request = open(id);
  if (request == nullptr) return;
  effects_.push_back(NoReply{id, request->connection, mute});
  finish(id);
}

void Core::close(RequestId id, std::string reason) {
  const Request* request = open(id);
  if (request == nullptr) return;
  effects_.push_back(CloseConnection{request->connection, std::move(reason)});
  finish(id);
}

void Core::long_poll(RequestId id) {
  const auto it = open_.find(id);
  if (it == open_.end() || it->second->long_poll) return;
  it->second->long_poll = true;
  effects_.push_back(LongPoll{id, it->second->request.connection});
}

// ---- Fetch: waiting for records
// ----------------------------------------------------------------------------------------

bool Core::may_wait(RequestId id) const {
  const auto it = open_.find(id);
  return it != open_.end() && it->second->may_wait;
}

void Core::wait_for_records(RequestId id, const std::vector<Partition*>& partitions, MonoTime deadline) {
  Open& open = *open_.at(id);
  if (!open.watching.empty()) return;  // It has been looked at again, for nothing: it goes on waiting as it did.
  for (Partition* partition : partitions) {
    partition->fetches.insert(id);
    open.watching.push_back(partition->id);
  }
  fetch_deadlines_.schedule(id.value, deadline);
  long_poll(id);
}

void Core::wake_fetches(Partition& partition) {
  const std::vector<RequestId> waiting(partition.fetches.begin(), partition.fetches.end());
  for (const RequestId id : waiting) {
    if (const auto it = open_.find(id); it != open_.end()) run_handler(*it->second);
  }
}

void Core::fetch_due(RequestId id) {
  const auto it = open_.find(id);
  if (it == open_.end()) return;
  it->second->may_wait = false;
  run_handler(*it->second);
}

}  // namespace weir::broker
