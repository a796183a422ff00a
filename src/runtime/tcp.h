// TCP for servers and for clients on an event loop: reads into the owner's buffer, writes of memory and file ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "runtime/address.h"
#include "runtime/event_loop.h"
#include "weir/types.h"

namespace weir::runtime {

/// The owner's side of a connection. All calls come on the connection's loop; none after closed().
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  /// Where the next bytes should go, at least one byte; valid until received() or closed().
  virtual std::span<std::byte> read_buffer() = 0;
  /// `n` > 0 bytes arrived at the front of the span last given. May pause, send and close.
  virtual void received(Bytes n) = 0;
  /// What send() could not hand to the kernel at once has been taken now. Never from inside send().
  virtual void drained() {}
  /// The connection has ended, once. kClosed: the peer or we closed it in order; its message is the reason.
  virtual void closed(const Error& why) = 0;
};

/// One TCP connection. Every function: its loop's thread. Its loop keeps it and its owner alive until closed() has been
/// called, so whoever holds neither may forget both.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;

  /// Reads from now on, into the owner's buffer; the connection does not read before this.
  virtual void start(std::shared_ptr<ConnectionOwner> owner) = 0;
  /// Queues bytes in order and writes what the socket takes at once. File ranges go by sendfile. A file that is shorter
  /// than said closes the connection. Nothing happens after close.
  virtual void send(Payload payload) = 0;
  /// Bytes queued and not yet taken by the kernel: the owner bounds it by pausing its reads.
  virtual Bytes unsent() const = 0;
  /// No received() until resume_reading(): the receive window fills and TCP pushes back. A peer that goes away is
  /// noticed when reading or writing goes on.
  virtual void pause_reading() = 0;
  virtual void resume_reading() = 0;
  virtual bool reading_paused() const = 0;
  /// Ends it now; what is unsent is dropped. The owner's closed() comes later from the loop, with `reason`.
  virtual void close(std::string reason) = 0;
  /// Reads no more and ends it once everything queued is sent.
  virtual void close_when_sent(std::string reason) = 0;
  virtual bool open() const = 0;

  /// "127.0.0.1:51234" and "127.0.0.1:9092".
  virtual const std::string& peer() const = 0;
  virtual const std::string& local() const = 0;
  virtual EventLoop& loop() = 0;
};

/// A listening socket. Destroyed on its loop's thread, or while that loop is not running; a connection that is on its
/// way to another loop then is still handed over.
class Listener {
 public:
  virtual ~Listener() = default;
  /// As bound, with the port the kernel chose when 0 was asked for.
  virtual const Address& address() const = 0;
  /// Accepts no more for now, and again. Loop thread.
  virtual void pause() = 0;
  virtual void resume() = 0;
};

struct ListenOptions {
  int backlog = 1024;
  /// SO_SNDBUF and SO_RCVBUF of accepted sockets; 0 leaves the system's.
  int send_buffer = 0;
  int receive_buffer = 0;
};

/// Called on `pick()`'s loop with each new connection (TCP_NODELAY set, not yet started).
using OnAccept = std::function<void(std::shared_ptr<Connection>)>;
/// Chooses the loop of the next connection; called on the listener's loop.
using PickLoop = std::function<EventLoop&()>;

/// Binds and listens; connections are accepted once `loop` runs. Errors name the address and the fix: kExists when the
/// port is taken. Any thread while `loop` is not running, else the loop thread.
Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const Address& address, PickLoop pick, OnAccept on_accept,
                                         ListenOptions options = {});
/// All connections on the listener's own loop.
Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const Address& address, OnAccept on_accept,
                                         ListenOptions options = {});

/// Connects within `timeout`; `done` is called on the loop, once, never from inside this call. Names are resolved. Any
/// thread.
void connect(EventLoop& loop, const Address& address, Duration timeout,
             std::function<void(Result<std::shared_ptr<Connection>>)> done);

}  // namespace weir::runtime
