// A plain TCP client for threads that may wait: command-line tools, the guard's measuring thread, tests.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "runtime/address.h"
#include "weir/types.h"

namespace weir::runtime {

/// Owned by one thread at a time. Every call takes the moment by which it must be done: kTimeout after it.
class BlockingSocket {
 public:
  /// Tries each address the name has. Errors name the address. `interrupted` is looked at every 100 ms of waiting:
  /// kClosed once it is true. Finding the addresses of a name is the system's, with times of its own.
  static Result<BlockingSocket> connect(const Address& address, MonoTime deadline,
                                        const std::atomic<bool>* interrupted = nullptr);
  BlockingSocket(BlockingSocket&& other) noexcept;
  BlockingSocket& operator=(BlockingSocket&& other) noexcept;
  ~BlockingSocket();

  /// All of it.
  Result<void> write(ByteView bytes, MonoTime deadline);
  /// Fills `out`; kClosed when the peer ends the stream before.
  Result<void> read(std::span<std::byte> out, MonoTime deadline);
  /// Whatever is there, at least one byte; 0 when the peer has ended the stream.
  Result<Bytes> read_some(std::span<std::byte> out, MonoTime deadline);
  /// One int32-length-prefixed frame as Kafka has them, without its length; kInvalid above `limit`.
  Result<ByteBuffer> read_frame(Bytes limit, MonoTime deadline);
  const std::string& peer() const { return peer_; }

 private:
  BlockingSocket(int descriptor, std::string peer) : descriptor_(descriptor), peer_(std::move(peer)) {}
  int descriptor_ = -1;
  std::string peer_;
};

}  // namespace weir::runtime
