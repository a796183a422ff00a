#include "runtime/blocking_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace weir::runtime {
namespace {

constexpr Duration kLookAround = std::chrono::milliseconds(100);

/// Waits until the descriptor is ready for `events`, or an error is pending on it.
Result<void> await(int descriptor, short events, MonoTime deadline, const std::string& peer) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system_clock().now().mono).count();
    pollfd p{descriptor, events, 0};
    const int ready = ::poll(&p, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready > 0) return {};
    if (ready == 0 && left <= 0) return fail(ErrorKind::kTimeout, fmt::format("{} did not answer in time", peer));
    if (ready < 0 && errno != EINTR)
      return fail(ErrorKind::kIo, fmt::format("cannot wait for {}: {}", peer, std::strerror(errno)));
  }
}

tl::unexpected<Error> broken(const char* what, const std::string& peer, int error) {
  return fail(error == ECONNRESET || error == EPIPE ? ErrorKind::kClosed : ErrorKind::kIo,
              fmt::format("cannot {} {}: {}", what, peer, std::strerror(error)));
}

}  // namespace

BlockingSocket::BlockingSocket(BlockingSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), peer_(std::move(other.peer_)) {}

BlockingSocket& BlockingSocket::operator=(BlockingSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(peer_, other.peer_);
  return *this;
}

BlockingSocket::~BlockingSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<BlockingSocket> BlockingSocket::connect(const Address& address, MonoTime deadline,
                                               const std::atomic<bool>* interrupted) {
  const std::string peer = address.text();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
      error != 0)
    return fail(ErrorKind::kUnavailable, fmt::format("cannot find {}: {}", peer, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Error last{ErrorKind::kUnavailable, fmt::format("{} has no address", peer)};
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    BlockingSocket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), peer);
    if (socket.descriptor_ < 0) continue;
    const int yes = 1;
    ::setsockopt(socket.descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    int error = ::connect(socket.descriptor_, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      Result<void> ready;
      for (MonoTime soon{}; soon < deadline;) {
        if (interrupted != nullptr && *interrupted)
          return fail(ErrorKind::kClosed, fmt::format("stopped while connecting to {}", peer));
        soon = std::min(deadline, system_clock().now().mono + kLookAround);
        ready = await(socket.descriptor_, POLLOUT, soon, peer);
        if (ready || ready.error().kind != ErrorKind::kTimeout) break;
      }
      if (!ready) {
        last = ready.error();
        continue;
      }
      socklen_t size = sizeof error;
      ::getsockopt(socket.descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return socket;
    last = {ErrorKind::kUnavailable,
            fmt::format("cannot connect to {}: {}; is the address right and the server running?", peer,
                        std::strerror(error))};
  }
  return tl::unexpected(last);
}

Result<void> BlockingSocket::write(ByteView bytes, MonoTime deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<Bytes>(n));
    } else if (errno == EAGAIN) {
      if (auto ready = await(descriptor_, POLLOUT, deadline, peer_); !ready) return ready;
    } else if (errno != EINTR) {
      return broken("write to", peer_, errno);
    }
  }
  return {};
}

Result<Bytes> BlockingSocket::read_some(std::span<std::byte> out, MonoTime deadline) {
  while (true) {
    const ssize_t n = ::recv(descriptor_, out.data(), out.size(), 0);
    if (n >= 0) return static_cast<Bytes>(n);
    if (errno == EAGAIN) {
      if (auto ready = await(descriptor_, POLLIN, deadline, peer_); !ready) return tl::unexpected(ready.error());
    } else if (errno != EINTR) {
      return broken("read from", peer_, errno);
    }
  }
}

Result<void> BlockingSocket::read(std::span<std::byte> out, MonoTime deadline) {
  while (!out.empty()) {
    auto n = read_some(out, deadline);
    if (!n) return tl::unexpected(n.error());
    if (*n == 0) return fail(ErrorKind::kClosed, fmt::format("{} closed the connection", peer_));
    out = out.subspan(*n);
  }
  return {};
}

Result<ByteBuffer> BlockingSocket::read_frame(Bytes limit, MonoTime deadline) {
  std::array<std::byte, 4> head;
  if (auto read_head = read(head, deadline); !read_head) return tl::unexpected(read_head.error());
  std::uint32_t length = 0;
  for (const std::byte b : head) length = length << 8 | std::to_integer<std::uint32_t>(b);
  if (length > limit)
    return fail(ErrorKind::kInvalid, fmt::format("{} sent a frame of {} bytes, the limit is {}", peer_,
                                                 static_cast<std::int32_t>(length), limit));
  ByteBuffer frame(length);
  if (auto body = read(frame, deadline); !body) return tl::unexpected(body.error());
  return frame;
}

}  // namespace weir::runtime
