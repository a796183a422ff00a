// One client: cuts requests out of its bytes, sends answers in the order of the requests.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "broker/api_table.h"
#include "broker/effects.h"
#include "broker/io_loop.h"
#include "runtime/frame_reader.h"
#include "runtime/tcp.h"

namespace weir::broker {

/// Owned by its io loop.
class ClientConnection final : public runtime::ConnectionOwner, public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(IoLoop& io, ConnectionId id, std::shared_ptr<runtime::Connection> socket);

  void start() { socket_->start(shared_from_this()); }
  void answer(RequestId request, const Response& response, Duration mute);
  void skip(RequestId request, Duration mute);
  void uncount(RequestId request);
  void close(const std::string& reason);
  void close_when_sent(const std::string& reason);
  /// Takes what can be taken: requests whose bytes are here, then the socket.
  void go_on();
  /// The request queue has room again.
  void room() {
    wants_room_ = false;
    go_on();
  }
  /// Nothing has come and nothing has gone since `when`; a client that does not read its answers is idle too.
  bool idle_since(MonoTime when);
  const std::string& peer() const { return socket_->peer(); }

 private:
  // Requests of one connection that may be open at a time, whatever their kind.
  static constexpr std::size_t kMaxOpen = 128;
  // Answers the kernel has not taken, or that wait for an earlier one: beyond this the client gets nothing new.
  static constexpr Bytes kMaxUnsent = 2 * kMiB;

  /// A request on its way, in the order they came.
  struct Waiting {
    RequestId id;
    const Api* api = nullptr;
    std::int16_t version = 0;
    std::int32_t correlation_id = 0;
    Bytes memory = 0;  // as the request queue counts it
    bool counted = true;
    bool done = false;
    MonoTime since{};
    std::string client_id;
    Payload answer;
  };

  std::span<std::byte> read_buffer() override { return frames_.space(); }
  void received(Bytes n) override;
  void drained() override { go_on(); }
  void closed(const Error& why) override;

  bool room_in_queue();
  bool take_request(SharedBytes frame);
  bool refuse(const std::string& why, const char* reason);
  Waiting* find(RequestId request);
  void finish(Waiting& waiting, Duration mute);
  void uncount(Waiting& waiting);
  void mute(Duration duration);
  bool muted() const { return unmute_ != runtime::kNoTimer; }

  IoLoop& io_;
  const ConnectionId id_;
  std::shared_ptr<runtime::Connection> socket_;
  const std::string client_host_;
  runtime::FrameReader frames_;
  std::deque<Waiting> waiting_;
  Bytes held_ = 0;        // answers that wait for an earlier one
  bool greeted_ = false;  // it has sent one good request: what goes wrong later is no stranger's doing
  bool closing_ = false;
  bool taking_ = false;
  bool wants_room_ = false;  // it will be called when the request queue has room
  runtime::TimerId unmute_ = runtime::kNoTimer;
  MonoTime muted_until_{};  // while muted
  MonoTime last_active_{};
  Bytes unsent_ = 0;  // when it was last asked whether it is idle
};

}  // namespace weir::broker
