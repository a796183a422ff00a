#include "runtime/frame_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace weir::runtime {
namespace {
constexpr Bytes kBuffer = 64 * kKiB;
constexpr Bytes kFirstBuffer = 4 * kKiB;  // an idle connection holds no more
constexpr Bytes kStep = 64 * kKiB;        // a big frame's memory grows by its own size again, from this
constexpr Bytes kAtOnce = kMiB;           // but at once up to this to who has sent as much before
constexpr Bytes kLength = 4;
}  // namespace

FrameReader::FrameReader(Bytes limit) : limit_(limit), buffer_(kFirstBuffer) {}

std::span<std::byte> FrameReader::space() {
  if (large_size_ > 0) {
    if (filled_ == large_.size()) large_.resize(std::min(large_size_, std::max(kStep, 2 * filled_)));
    return std::span(large_).subspan(filled_);
  }
  if (begin_ > 0 && (begin_ == end_ || buffer_.size() - end_ < buffer_.size() / 2)) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  return std::span(buffer_).subspan(end_);
}

void FrameReader::received(Bytes n) {
  if (large_size_ > 0) {
    filled_ += n;
    WEIR_ASSERT(filled_ <= large_.size());
    return;
  }
  end_ += n;
  WEIR_ASSERT(end_ <= buffer_.size());
  // Reads that fill the buffer say that more is waiting: fewer, larger reads from now on.
  if (end_ == buffer_.size() && buffer_.size() < kBuffer) buffer_.resize(kBuffer);
}

Result<std::optional<SharedBytes>> FrameReader::next() {
  if (large_size_ > 0) {
    if (filled_ < large_size_) return std::nullopt;
    at_once_ = std::min(large_size_, kAtOnce);
    large_size_ = 0;
    filled_ = 0;
    return SharedBytes(std::exchange(large_, {}));
  }
  const ByteView waiting = pending();
  if (waiting.size() < kLength) return std::nullopt;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kLength; ++i) length = length << 8 | std::to_integer<std::uint32_t>(waiting[i]);
  if (length > limit_)
    return fail(ErrorKind::kInvalid, fmt::format("a frame says it is {} bytes long, the limit is {}",
                                                 static_cast<std::int32_t>(length), limit_));
  const ByteView body = waiting.subspan(kLength);
  if (body.size() >= length) {
    begin_ += kLength + length;
    return SharedBytes(to_buffer(body.first(length)));
  }
  if (kLength + length <= kBuffer / 2) return std::nullopt;  // it fits the common buffer, or a buffer a little larger
  large_.resize(std::min<Bytes>(length, std::max({kStep, at_once_, 2 * body.size()})));
  std::memcpy(large_.data(), body.data(), body.size());
  filled_ = body.size();
  large_size_ = length;
  begin_ = end_ = 0;
  return std::nullopt;
}

ByteView FrameReader::pending() const {
  return large_size_ > 0 ? ByteView(large_).first(filled_) : ByteView(buffer_).subspan(begin_, end_ - begin_);
}

Bytes FrameReader::held() const { return buffer_.capacity() + large_.capacity(); }

}  // namespace weir::runtime
