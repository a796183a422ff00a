#include "runtime/tcp.h"

#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "runtime/reactor.h"
#include "runtime/signals.h"

namespace weir::runtime {
namespace {

using asio::ip::tcp;

constexpr int kReadsPerTurn = 8;             // then other connections get theirs
constexpr Bytes kWritePerTurn = 4 * kMiB;    // likewise
constexpr Bytes kCopyChunk = 64 * kKiB;      // for files without a descriptor
constexpr std::size_t kPiecesPerWrite = 64;  // of one writev

std::string text_of(const tcp::endpoint& endpoint) {
  return Address{endpoint.address().to_string(), endpoint.port()}.text();
}

class TcpConnection final : public Connection, public Resident {
 public:
  TcpConnection(EventLoop& loop, tcp::socket socket) : loop_(loop), socket_(std::move(socket)) {
    asio::error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    if (const auto end = socket_.remote_endpoint(ignored); !ignored) peer_ = text_of(end);
    if (const auto end = socket_.local_endpoint(ignored); !ignored) local_ = text_of(end);
  }

  void start(std::shared_ptr<ConnectionOwner> owner) override {
    WEIR_ASSERT(owner_ == nullptr && !closed_);
    owner_ = std::move(owner);
    loop_.reactor().residents.emplace(this, std::static_pointer_cast<TcpConnection>(shared_from_this()));
    await_read();
  }

  void send(Payload payload) override {
    if (closed_ || ending_) return;
    const bool idle = queue_.empty();
    for (const auto& piece : payload.pieces()) queue_.push_back(piece);
    unsent_ += payload.size();
    if (idle && !queue_.empty()) write();
  }

  Bytes unsent() const override { return unsent_; }

  void pause_reading() override { paused_ = true; }
  void resume_reading() override {
    if (!std::exchange(paused_, false)) return;
    if (!reading_) await_read();
  }
  bool reading_paused() const override { return paused_; }

  void close(std::string reason) override { finish({ErrorKind::kClosed, std::move(reason)}); }
  void close_when_sent(std::string reason) override {
    if (queue_.empty()) return close(std::move(reason));
    ending_ = true;
    ending_reason_ = std::move(reason);
  }
  bool open() const override { return !closed_; }

  const std::string& peer() const override { return peer_; }
  const std::string& local() const override { return local_; }
  EventLoop& loop() override { return loop_; }

  void abandon() override { owner_.reset(); }

 private:
  std::shared_ptr<TcpConnection> self() { return std::static_pointer_cast<TcpConnection>(shared_from_this()); }

  void await_read() {
    if (reading_ || paused_ || closed_ || ending_) return;
    reading_ = true;
    socket_.async_wait(tcp::socket::wait_read, [self = self()](const asio::error_code& error) {
      self->reading_ = false;
      if (!error) self->read();
    });
  }

  void read() {
    for (int turn = 0; turn < kReadsPerTurn && !paused_ && !closed_ && !ending_; ++turn) {
      const std::span<std::byte> space = owner_->read_buffer();
      WEIR_ASSERT(!space.empty());
      const ssize_t n = ::recv(socket_.native_handle(), space.data(), space.size(), 0);
      if (n < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return broken("read from", errno);
        break;
      }
      if (n == 0) return finish({ErrorKind::kClosed, "closed by the peer"});
      owner_->received(static_cast<Bytes>(n));
      if (static_cast<Bytes>(n) < space.size()) break;  // most likely that was all
    }
    await_read();
  }

  void await_write() {
    if (writing_ || closed_) return;
    writing_ = true;
    socket_.async_wait(tcp::socket::wait_write, [self = self()](const asio::error_code& error) {
      self->writing_ = false;
      if (error || self->closed_) return;
      self->write();
      if (self->queue_.empty() && !self->closed_ && self->owner_) self->owner_->drained();
    });
  }

  /// Hands the kernel what it takes now.
  void write() {
    Bytes written = 0;
    while (!queue_.empty()) {
      if (written >= kWritePerTurn) return await_write();
      const ssize_t n = std::holds_alternative<SharedBytes>(queue_.front()) ? write_memory() : write_file();
      if (n < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return await_write();
        return broken("write to", errno);
      }
      if (n == 0) {
        finish({ErrorKind::kIo, fmt::format("{}: a file ended before the bytes promised to the peer", peer_)});
        return;
      }
      written += static_cast<Bytes>(n);
      take(static_cast<Bytes>(n));
    }
    if (ending_) finish({ErrorKind::kClosed, std::move(ending_reason_)});
  }

  ssize_t write_memory() {
    std::array<iovec, kPiecesPerWrite> vector;
    std::size_t count = 0;
    Bytes skip = front_done_;
    auto piece = queue_.begin();
    for (; piece != queue_.end() && count < vector.size(); ++piece) {
      const auto* bytes = std::get_if<SharedBytes>(&*piece);
      if (bytes == nullptr) break;
      const ByteView rest = bytes->view().subspan(std::exchange(skip, 0));
      vector[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = count;
    return ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | (piece != queue_.end() ? MSG_MORE : 0));
  }

  ssize_t write_file() {
    const auto& range = std::get<FileRange>(queue_.front());
    const std::uint64_t position = range.position + front_done_;
    const Bytes left = std::min(range.length - front_done_, kWritePerTurn);
    if (const int file = range.file->descriptor(); file >= 0) {
      auto offset = static_cast<off_t>(position);
      return ::sendfile(socket_.native_handle(), file, &offset, left);
    }
    ByteBuffer chunk(std::min(left, kCopyChunk));
    const auto n = range.file->read_at(position, chunk);
    if (!n) {
      errno = EIO;
      return -1;
    }
    if (*n == 0) return 0;
    return ::send(socket_.native_handle(), chunk.data(), *n, MSG_NOSIGNAL);
  }

  void take(Bytes n) {
    unsent_ -= n;
    n += front_done_;
    while (!queue_.empty()) {
      const Bytes size = std::visit(
          [](const auto& piece) -> Bytes {
            if constexpr (std::is_same_v<std::decay_t<decltype(piece)>, SharedBytes>)
              return piece.size();
            else
              return piece.length;
          },
          queue_.front());
      if (n < size) break;
      n -= size;
      queue_.pop_front();
    }
    front_done_ = n;
  }

  void broken(const char* what, int error) {
    const bool gone = error == ECONNRESET || error == EPIPE;
    finish({gone ? ErrorKind::kClosed : ErrorKind::kIo,
            fmt::format("cannot {} {}: {}", what, peer_, std::strerror(error))});
  }

  void finish(Error why) {
    if (std::exchange(closed_, true)) return;
    asio::error_code ignored;
    socket_.close(ignored);
    queue_.clear();
    unsent_ = 0;
    if (!owner_) return;
    // Later, from the loop, so that the owner may close from anywhere.
    asio::post(loop_.reactor().io, [self = self(), why = std::move(why)] {
      auto owner = std::move(self->owner_);
      self->loop_.reactor().residents.erase(self.get());
      if (owner) owner->closed(why);
    });
  }

  EventLoop& loop_;
  tcp::socket socket_;
  std::string peer_ = "unknown";
  std::string local_ = "unknown";
  std::shared_ptr<ConnectionOwner> owner_;
  std::deque<Payload::Piece> queue_;
  Bytes front_done_ = 0;  // of the first piece
  Bytes unsent_ = 0;
  bool reading_ = false;  // a wait is pending
  bool writing_ = false;
  bool paused_ = false;
  bool ending_ = false;  // close once everything is sent
  bool closed_ = false;
  std::string ending_reason_;
};

class TcpListener final : public Listener {
 public:
  /// What outlives the Listener while an accept is pending.
  struct State : std::enable_shared_from_this<State> {
    State(EventLoop& l, tcp::acceptor a) : loop(l), acceptor(std::move(a)) {}

    void accept() {
      if (pending || paused || !acceptor.is_open()) return;
      pending = true;
      EventLoop& target = pick();
      acceptor.async_accept(target.reactor().io,
                            [self = shared_from_this(), &target](const asio::error_code& error, tcp::socket socket) {
                              self->pending = false;
                              if (!self->acceptor.is_open()) return;
                              if (error) {
                                // Out of descriptors or memory, most likely: what waits in the backlog is served when
                                // there is room again.
                                if (error != asio::error::operation_aborted && error != asio::error::connection_aborted)
                                  return self->retry(error);
                              } else {
                                self->hand_over(target, std::move(socket));
                              }
                              self->accept();
                            });
    }

    void hand_over(EventLoop& target, tcp::socket socket) {
      asio::error_code ignored;
      if (options.send_buffer > 0) socket.set_option(asio::socket_base::send_buffer_size(options.send_buffer), ignored);
      if (options.receive_buffer > 0)
        socket.set_option(asio::socket_base::receive_buffer_size(options.receive_buffer), ignored);
      auto connection = std::make_shared<TcpConnection>(target, std::move(socket));
      target.dispatch([on_accept = on_accept, connection] { on_accept(connection); });
    }

    void retry(const asio::error_code& error) {
      if (complaints.allow(loop.now().mono))
        log::warn("cannot accept connections on {}: {}; raise the limit of open files if it stays", address.text(),
                  error.message());
      loop.call_after(std::chrono::milliseconds(100), [self = shared_from_this()] { self->accept(); });
    }

    EventLoop& loop;
    tcp::acceptor acceptor;
    Address address;
    ListenOptions options;
    PickLoop pick;
    OnAccept on_accept;
    log::Every complaints{std::chrono::seconds(30)};
    bool pending = false;
    bool paused = false;
  };

  explicit TcpListener(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~TcpListener() override {
    asio::error_code ignored;
    state_->acceptor.close(ignored);
  }
  const Address& address() const override { return state_->address; }
  void pause() override { state_->paused = true; }
  void resume() override {
    state_->paused = false;
    state_->accept();
  }

 private:
  std::shared_ptr<State> state_;
};

tl::unexpected<Error> cannot_listen(const Address& address, const asio::error_code& error) {
  const std::string text = address.text();
  if (error == asio::error::address_in_use)
    return fail(ErrorKind::kExists, fmt::format("{} is taken: stop what listens there or choose another port", text));
  if (error == asio::error::access_denied)
    return fail(ErrorKind::kIo, fmt::format("may not listen on {}: choose a port above 1023 or run as root", text));
  if (error == asio::error_code(EADDRNOTAVAIL, asio::system_category()))
    return fail(ErrorKind::kInvalid, fmt::format("cannot listen on {}: this machine has no such address", text));
  return fail(ErrorKind::kIo, fmt::format("cannot listen on {}: {}", text, error.message()));
}

/// One attempt to connect: resolves, tries each address, gives up at the deadline.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  using Done = std::function<void(Result<std::shared_ptr<Connection>>)>;

  Attempt(EventLoop& loop, Address address, Duration timeout, Done done)
      : loop_(loop),
        address_(std::move(address)),
        timeout_(timeout),
        done_(std::move(done)),
        resolver_(loop.reactor().io),
        socket_(loop.reactor().io) {}

  void start() {
    timer_ = loop_.call_after(timeout_, [self = shared_from_this()] {
      self->timer_ = kNoTimer;
      self->finish(fail(ErrorKind::kTimeout, fmt::format("cannot connect to {} within {:.0f} ms", self->address_.text(),
                                                         to_ms(self->timeout_))));
    });
    asio::error_code not_a_number;
    if (const auto number = asio::ip::make_address(address_.host, not_a_number); !not_a_number) {
      endpoints_ = {tcp::endpoint(number, address_.port)};
      return try_next();
    }
    resolver_.async_resolve(
        address_.host, std::to_string(address_.port),
        [self = shared_from_this()](const asio::error_code& error, const tcp::resolver::results_type& results) {
          if (error) return self->failed(error);
          for (const auto& result : results) self->endpoints_.push_back(result.endpoint());
          self->try_next();
        });
  }

 private:
  void try_next() {
    if (!done_) return;
    asio::error_code ignored;
    socket_.close(ignored);
    socket_.async_connect(endpoints_[next_], [self = shared_from_this()](const asio::error_code& error) {
      if (!self->done_) return;
      if (!error) return self->finish(std::make_shared<TcpConnection>(self->loop_, std::move(self->socket_)));
      if (++self->next_ < self->endpoints_.size()) return self->try_next();
      self->failed(error);
    });
  }

  void failed(const asio::error_code& error) {
    finish(fail(ErrorKind::kUnavailable,
                fmt::format("cannot connect to {}: {}; is the address right and the server running?", address_.text(),
                            error.message())));
  }

  void finish(Result<std::shared_ptr<Connection>> result) {
    if (!done_) return;
    if (timer_ != kNoTimer) loop_.cancel(timer_);
    resolver_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
    std::exchange(done_, nullptr)(std::move(result));
  }

  EventLoop& loop_;
  const Address address_;
  const Duration timeout_;
  Done done_;
  TimerId timer_ = kNoTimer;
  tcp::resolver resolver_;
  tcp::socket socket_;
  std::vector<tcp::endpoint> endpoints_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const Address& address, PickLoop pick, OnAccept on_accept,
                                         ListenOptions options) {
  ignore_broken_pipes();  // sendfile has no flag against SIGPIPE
  asio::error_code error;
  tcp::resolver resolver(loop.reactor().io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error || found.empty())
    return fail(ErrorKind::kInvalid, fmt::format("cannot listen on {}: {}", address.text(), error.message()));
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(loop.reactor().io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(options.backlog, error);
  if (error) return cannot_listen(address, error);
  auto state = std::make_shared<TcpListener::State>(loop, std::move(acceptor));
  state->address = {address.host, state->acceptor.local_endpoint(error).port()};
  state->options = options;
  state->pick = std::move(pick);
  state->on_accept = std::move(on_accept);
  loop.post([state] { state->accept(); });
  return std::make_unique<TcpListener>(std::move(state));
}

Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const Address& address, OnAccept on_accept,
                                         ListenOptions options) {
  return listen(loop, address, [&loop]() -> EventLoop& { return loop; }, std::move(on_accept), options);
}

void connect(EventLoop& loop, const Address& address, Duration timeout,
             std::function<void(Result<std::shared_ptr<Connection>>)> done) {
  ignore_broken_pipes();
  auto attempt = std::make_shared<Attempt>(loop, address, timeout, std::move(done));
  loop.post([attempt] { attempt->start(); });
}

}  // namespace weir::runtime
