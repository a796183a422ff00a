// One io loop: its client connections, from bytes to decoded requests and from responses to bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "broker/complaints.h"
#include "broker/effects.h"
#include "broker/request.h"
#include "runtime/event_loop.h"
#include "runtime/tcp.h"
#include "weir/types.h"

namespace weir::broker {

class ClientConnection;
class Server;

/// Owned by its event loop; every function there.
class IoLoop {
 public:
  /// `index` is part of every connection's id, so that an answer finds its loop.
  IoLoop(Server& server, runtime::EventLoop& loop, std::uint64_t index);
  ~IoLoop();

  static std::uint64_t index_of(ConnectionId connection) { return connection.value >> kIndexShift; }

  void accept(std::shared_ptr<runtime::Connection> connection);
  void answer(const Reply& reply);
  void answer(const NoReply& reply);
  void uncount(const LongPoll& poll);
  void close(const CloseConnection& close);
  /// Reads no more; what is queued is sent, then the connections end.
  void stop();

  runtime::EventLoop& loop() { return loop_; }
  std::size_t connections() const { return connections_.size(); }

  // ---- For its connections ------------------------------------------------------------------------------------------

  Server& server() { return server_; }
  void closed(ConnectionId connection);
  /// The request queue has room again: the connection, if it is still there, reads on.
  void room(ConnectionId connection);
  /// Says why a connection is closed: counted by `reason`, and logged once in a while for each `kind`.
  void complain(const std::string& peer, const std::string& why, const char* reason);
  void complain(const std::string& peer, const std::string& why, const char* reason, std::string_view kind);

 private:
  static constexpr int kIndexShift = 48;
  ClientConnection* find(ConnectionId connection);
  void close_idle();

  Server& server_;
  runtime::EventLoop& loop_;
  const std::uint64_t index_;
  std::uint64_t next_connection_ = 0;
  std::unordered_map<ConnectionId, std::shared_ptr<ClientConnection>> connections_;
  Complaints complaints_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weir::broker
