#include "storage/batch_cursor.h"

#include <algorithm>

#include "wire/crc32c.h"

namespace weir::storage {
namespace {
constexpr Bytes kCrcCoversFrom = 21;
constexpr Bytes kCrcChunk = 64 * kKiB;
}  // namespace

ByteView BatchCursor::window_at(std::uint64_t position, Bytes at_least) {
  const bool inside = position >= window_position_ && position + at_least <= window_position_ + window_size_;
  if (!inside) {
    const auto n =
        file_.read_at(position, std::span(window_).first(std::min<std::uint64_t>(window_.size(), end_ - position)));
    window_position_ = position;
    window_size_ = n ? *n : 0;
    if (!n) error_ = n.error();
  }
  return ByteView(window_).first(window_size_).subspan(position - window_position_);
}

std::optional<wire::BatchHeader> BatchCursor::next() {
  position_ = next_;
  if (position_ + wire::kBatchHeaderSize > end_) return std::nullopt;
  const auto header = wire::read_batch_header(window_at(position_, wire::kBatchHeaderSize));
  if (!header || header->size() > end_ - position_ || header->last_offset_delta < 0) return std::nullopt;
  header_ = *header;
  next_ = position_ + header_.size();
  return header_;
}

bool BatchCursor::crc_holds() {
  std::uint32_t crc = 0;
  std::uint64_t at = position_ + kCrcCoversFrom;
  if (next_ <= window_position_ + window_size_) {
    crc = wire::crc32c(window_at(at, next_ - at).first(next_ - at));
    return crc == header_.crc;
  }
  ByteBuffer chunk(std::min<std::uint64_t>(kCrcChunk, next_ - at));
  while (at < next_) {
    const auto n = file_.read_at(at, std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), next_ - at)));
    if (!n) error_ = n.error();
    if (!n || *n == 0) return false;
    crc = wire::crc32c(ByteView(chunk).first(*n), crc);
    at += *n;
  }
  return crc == header_.crc;
}

}  // namespace weir::storage
