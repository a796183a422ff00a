#include "broker/io_loop.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "broker/client_connection.h"
#include "broker/server.h"
#include "broker/server_metrics.h"

namespace weir::broker {
namespace {
constexpr Duration kIdleSweep = std::chrono::seconds(30);
}

IoLoop::IoLoop(Server& server, runtime::EventLoop& loop, std::uint64_t index)
    : server_(server), loop_(loop), index_(index) {
  close_idle();
}

IoLoop::~IoLoop() { *alive_ = false; }

void IoLoop::accept(std::shared_ptr<runtime::Connection> socket) {
  const std::string peer = socket->peer();
  if (!server_.admit_connection()) {
    complain(peer, "there are max.connections connections already", "max_connections");
    socket->close("too many connections");
    return;
  }
  const ConnectionId id((index_ << kIndexShift) | ++next_connection_);
  auto connection = std::make_shared<ClientConnection>(*this, id, std::move(socket));
  connections_[id] = connection;
  server_.metrics().connections().add(1);
  connection->start();
}

ClientConnection* IoLoop::find(ConnectionId connection) {
  const auto it = connections_.find(connection);
  return it == connections_.end() ? nullptr : it->second.get();
}

void IoLoop::answer(const Reply& reply) {
  if (auto* connection = find(reply.connection)) connection->answer(reply.request, reply.response, reply.mute);
}

void IoLoop::answer(const NoReply& reply) {
  if (auto* connection = find(reply.connection)) connection->skip(reply.request, reply.mute);
}

void IoLoop::uncount(const LongPoll& poll) {
  if (auto* connection = find(poll.connection)) connection->uncount(poll.request);
}

void IoLoop::close(const CloseConnection& close) {
  if (auto* connection = find(close.connection)) {
    complain(connection->peer(), close.reason, "request");
    connection->close(close.reason);
  }
}

void IoLoop::room(ConnectionId connection) {
  if (auto* found = find(connection)) found->room();
}

void IoLoop::closed(ConnectionId connection) {
  if (connections_.erase(connection) > 0) {
    server_.metrics().connections().add(-1);
    server_.release_connection();
  }
  server_.gone(connection);
}

void IoLoop::complain(const std::string& peer, const std::string& why, const char* reason) {
  complain(peer, why, reason, reason);
}

void IoLoop::complain(const std::string& peer, const std::string& why, const char* reason, std::string_view kind) {
  server_.metrics().refused(reason);
  complaints_.warn(loop_.now().mono, fmt::format("closed connections ({})", kind),
                   fmt::format("closed the connection of {}: {}", peer, why));
}

void IoLoop::close_idle() {
  constexpr std::int64_t kYearMs = 365LL * 24 * 3600 * 1000;
  const auto limit = std::chrono::milliseconds(std::min(server_.config().connections_max_idle_ms, kYearMs));
  if (limit.count() < 0) return;
  const MonoTime now = loop_.now().mono;
  std::vector<std::shared_ptr<ClientConnection>> idle;
  for (const auto& [id, connection] : connections_) {
    if (connection->idle_since(now - limit)) idle.push_back(connection);
  }
  for (const auto& connection : idle) connection->close("idle");
  loop_.call_after(std::min<Duration>(kIdleSweep, limit + std::chrono::milliseconds(1)),
                   [this, alive = std::weak_ptr(alive_)] {
                     const auto held = alive.lock();
                     if (held && *held) close_idle();
                   });
}

void IoLoop::stop() {
  complaints_.finish();
  std::vector<std::shared_ptr<ClientConnection>> all;
  for (const auto& [id, connection] : connections_) all.push_back(connection);
  for (const auto& connection : all) connection->close_when_sent("the broker is stopping");
}

}  // namespace weir::broker
