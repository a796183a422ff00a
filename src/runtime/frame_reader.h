// Cuts a byte stream into Kafka's frames (int32 length, then that many bytes) with one copy at most.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "weir/types.h"

namespace weir::runtime {

/// Small frames share one buffer of 64 KiB; a big frame is read straight into a buffer of its own, which is handed
/// over. Memory is taken only for a length that passed `limit`, and grows with the bytes that arrive; up to 1 MiB of it
/// is taken at once when the last big frame had as much. Owned by one loop.
class FrameReader {
 public:
  /// `limit`: the longest frame taken (socket.request.max.bytes), without its length field.
  explicit FrameReader(Bytes limit);

  /// Where the next bytes should go.
  std::span<std::byte> space();
  /// `n` bytes arrived there.
  void received(Bytes n);
  /// The next whole frame, or an empty optional when more bytes are needed. kInvalid for a length below 0 or above the
  /// limit: the stream is lost then. Callers stop asking when their queue is full and ask again when there is room.
  Result<std::optional<SharedBytes>> next();
  /// The bytes that are held and belong to no whole frame yet; to tell what a stranger sent.
  ByteView pending() const;
  /// Memory held.
  Bytes held() const;

 private:
  Bytes limit_;
  ByteBuffer buffer_;  // bytes [begin_, end_) are not cut yet
  Bytes begin_ = 0;
  Bytes end_ = 0;
  ByteBuffer large_;  // the frame being read apart, its first filled_ bytes are there
  Bytes large_size_ = 0;
  Bytes filled_ = 0;
  Bytes at_once_ = 0;  // what the last big frame took, within limits
};

}  // namespace weir::runtime
