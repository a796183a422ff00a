// Walks the batches of a segment file, header by header.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "wire/record_batch.h"

namespace weir::storage {

/// Reads ahead into a window, so that small batches cost few reads and large ones only their headers. Short-lived, one
/// thread.
class BatchCursor {
 public:
  /// From `position`, which is the start of a batch, to `end`.
  BatchCursor(const ReadableFile& file, std::uint64_t position, std::uint64_t end)
      : file_(file), position_(position), next_(position), end_(end) {}

  /// The header of the next batch that is whole; nothing at the end and at the first bytes that are no such batch.
  std::optional<wire::BatchHeader> next();
  /// True when the batch that next() gave has the CRC that it says. Reads all of it.
  bool crc_holds();

  /// Where the batch that next() gave begins and ends; after its end, where the whole batches end.
  std::uint64_t position() const { return position_; }
  std::uint64_t next_position() const { return next_; }
  /// The reading failed; not the same as bytes that are no batch.
  const std::optional<Error>& error() const { return error_; }

 private:
  ByteView window_at(std::uint64_t position, Bytes at_least);

  const ReadableFile& file_;
  std::uint64_t position_;
  std::uint64_t next_;
  const std::uint64_t end_;
  wire::BatchHeader header_;
  std::uint64_t window_position_ = 0;
  Bytes window_size_ = 0;
  std::array<std::byte, 4096> window_;
  std::optional<Error> error_;
};

}  // namespace weir::storage
