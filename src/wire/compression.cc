#include "wire/compression.h"

#include <fmt/format.h>
#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/assert.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace weir::wire {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"none", "gzip", "snappy", "lz4", "zstd"};

tl::unexpected<Error> damaged(Codec codec) {
  return fail(ErrorKind::kInvalid, fmt::format("the {} data are damaged", name(codec)));
}
tl::unexpected<Error> too_large(Codec codec, Bytes max) {
  return fail(ErrorKind::kNoSpace, fmt::format("the {} data decompress to more than {} bytes", name(codec), max));
}

/// The decompressed bytes so far. Doubles from a modest start, so that memory follows what comes out and not what a
/// header claims. One byte beyond `max` is offered, which tells "exactly max" from "more".
class Output {
 public:
  Output(Bytes packed, Bytes max) : max_(std::min(max, kGiB)) {
    bytes_.resize(std::min(max_ + 1, std::max<Bytes>(4 * packed, 4 * kKiB)));
  }

  /// Where the next bytes go; valid until the next call.
  std::span<std::byte> room() {
    if (used_ == bytes_.size() && !over()) bytes_.resize(std::min(max_ + 1, bytes_.size() * 2));
    return std::span(bytes_).subspan(used_);
  }
  void advance(Bytes n) { used_ += n; }
  bool over() const { return used_ > max_; }
  ByteBuffer take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  ByteBuffer bytes_;
  const Bytes max_;
  Bytes used_ = 0;
};

template <typename T>
T* pointer(const std::byte* p) {
  return reinterpret_cast<T*>(const_cast<std::byte*>(p));  // C interfaces of the libraries
}

// ---- gzip
// ------------------------------------------------------------------------------------------------------------

constexpr int kGzipWindow = 15 + 16;  // 32 KiB window, gzip header

ByteBuffer gzip(ByteView plain) {
  z_stream stream{};
  WEIR_ASSERT(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  ByteBuffer out(deflateBound(&stream, plain.size()));
  stream.next_in = pointer<Bytef>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = pointer<Bytef>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int done = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  WEIR_ASSERT(done == Z_STREAM_END);
  return out;
}

Result<ByteBuffer> gunzip(ByteView packed, Bytes max) {
  z_stream stream{};
  WEIR_ASSERT(inflateInit2(&stream, kGzipWindow) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  stream.next_in = pointer<Bytef>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  Output out(packed.size(), max);
  for (;;) {
    const std::span<std::byte> room = out.room();
    stream.next_out = pointer<Bytef>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const Bytes made = room.size() - stream.avail_out;
    out.advance(made);
    if (out.over()) return too_large(Codec::kGzip, max);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) return out.take();
      if (inflateReset(&stream) != Z_OK) return damaged(Codec::kGzip);  // the next member
    } else if (status != Z_OK || (made == 0 && stream.avail_in == 0)) {
      return damaged(Codec::kGzip);
    }
  }
}

// ---- snappy
// ---------------------------------------------------------------------------------------------------------- Kafka's
// Java client writes xerial's stream: a magic, two versions, then blocks with an int32 length each. librdkafka writes
// and both read also a single bare block.

constexpr std::array<std::uint8_t, 8> kXerialMagic = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
constexpr Bytes kXerialHeader = 16;
constexpr Bytes kXerialBlock = 32 * kKiB;

ByteBuffer snap(ByteView plain) {
  Writer out(kXerialHeader + plain.size() / 2);
  out.raw(std::as_bytes(std::span(kXerialMagic)));
  out.int32(1);  // version, and the oldest version that can read it
  out.int32(1);
  std::string block;
  for (Bytes at = 0; at < plain.size(); at += kXerialBlock) {
    const ByteView part = plain.subspan(at, std::min(kXerialBlock, plain.size() - at));
    snappy::Compress(pointer<const char>(part.data()), part.size(), &block);
    out.int32(static_cast<std::int32_t>(block.size()));
    out.raw(as_bytes(block));
  }
  return out.take();
}

/// A bare block says how large it becomes. Snappy cannot expand more than 64 bytes out of 3, so a larger claim is a
/// lie.
Result<void> unsnap_block(ByteView block, Bytes max, ByteBuffer& out) {
  const std::string_view text = as_text(block);
  std::size_t length = 0;
  if (!snappy::GetUncompressedLength(text.data(), text.size(), &length)) return damaged(Codec::kSnappy);
  if (length > 32 * text.size() || !snappy::IsValidCompressedBuffer(text.data(), text.size()))
    return damaged(Codec::kSnappy);
  if (length > max - out.size()) return too_large(Codec::kSnappy, max);
  const Bytes start = out.size();
  out.resize(start + length);
  if (!snappy::RawUncompress(text.data(), text.size(), pointer<char>(out.data() + start)))
    return damaged(Codec::kSnappy);
  return {};
}

Result<ByteBuffer> unsnap(ByteView packed, Bytes max) {
  ByteBuffer out;
  if (packed.size() < kXerialHeader ||
      !std::ranges::equal(packed.first(kXerialMagic.size()), std::as_bytes(std::span(kXerialMagic)))) {
    if (auto done = unsnap_block(packed, max, out); !done) return tl::unexpected(done.error());
    return out;
  }
  Reader in(packed.subspan(kXerialHeader));
  while (in.remaining() > 0) {
    const ByteView block = in.view(static_cast<Bytes>(in.uint32()));
    if (!in.ok()) return damaged(Codec::kSnappy);
    if (auto done = unsnap_block(block, max, out); !done) return tl::unexpected(done.error());
  }
  if (!in.ok()) return damaged(Codec::kSnappy);
  return out;
}

// ---- lz4
// -------------------------------------------------------------------------------------------------------------

ByteBuffer lz4(ByteView plain) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;  // the only mode Kafka's Java client reads
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  ByteBuffer out(LZ4F_compressFrameBound(plain.size(), &preferences));
  const std::size_t size = LZ4F_compressFrame(out.data(), out.size(), plain.data(), plain.size(), &preferences);
  WEIR_ASSERT(!LZ4F_isError(size));
  out.resize(size);
  return out;
}

Result<ByteBuffer> unlz4(ByteView packed, Bytes max) {
  LZ4F_dctx* raw = nullptr;
  WEIR_ASSERT(!LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION)));
  const std::unique_ptr<LZ4F_dctx, std::size_t (*)(LZ4F_dctx*)> context(raw, LZ4F_freeDecompressionContext);
  Output out(packed.size(), max);
  for (;;) {
    const std::span<std::byte> room = out.room();
    std::size_t made = room.size();
    std::size_t taken = packed.size();
    const std::size_t hint = LZ4F_decompress(raw, room.data(), &made, packed.data(), &taken, nullptr);
    if (LZ4F_isError(hint)) return damaged(Codec::kLz4);
    out.advance(made);
    packed = packed.subspan(taken);
    if (out.over()) return too_large(Codec::kLz4, max);
    if (hint == 0 && packed.empty()) return out.take();
    if (made == 0 && taken == 0) return damaged(Codec::kLz4);  // ends in the middle of a frame
  }
}

// ---- zstd
// ------------------------------------------------------------------------------------------------------------

ByteBuffer zstd(ByteView plain) {
  ByteBuffer out(ZSTD_compressBound(plain.size()));
  const std::size_t size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), ZSTD_CLEVEL_DEFAULT);
  WEIR_ASSERT(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

Result<ByteBuffer> unzstd(ByteView packed, Bytes max) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  // A frame may demand a window of gigabytes; what Kafka's clients write needs far less than this.
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27);
  Output out(packed.size(), max);
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  for (;;) {
    const std::span<std::byte> room = out.room();
    ZSTD_outBuffer to{room.data(), room.size(), 0};
    const std::size_t before = in.pos;
    const std::size_t hint = ZSTD_decompressStream(context.get(), &to, &in);
    if (ZSTD_isError(hint)) return damaged(Codec::kZstd);
    out.advance(to.pos);
    if (out.over()) return too_large(Codec::kZstd, max);
    if (hint == 0 && in.pos == in.size) return out.take();
    if (to.pos == 0 && in.pos == before) return damaged(Codec::kZstd);  // ends in the middle of a frame
  }
}

}  // namespace

std::string_view name(Codec codec) {
  const auto number = static_cast<std::size_t>(codec);
  return number < kNames.size() ? kNames[number] : "unknown";
}

std::optional<Codec> parse_codec(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<Codec>(i);
  }
  return std::nullopt;
}

ByteBuffer compress(Codec codec, ByteView plain) {
  switch (codec) {
    case Codec::kNone: return to_buffer(plain);
    case Codec::kGzip: return gzip(plain);
    case Codec::kSnappy: return snap(plain);
    case Codec::kLz4: return lz4(plain);
    case Codec::kZstd: return zstd(plain);
  }
  WEIR_ASSERT(!"a codec Kafka does not have");
  return {};
}

Result<ByteBuffer> decompress(Codec codec, ByteView packed, Bytes max) {
  if (packed.empty() && codec != Codec::kNone) return damaged(codec);
  switch (codec) {
    case Codec::kNone: return packed.size() > max ? too_large(codec, max) : Result<ByteBuffer>(to_buffer(packed));
    case Codec::kGzip: return gunzip(packed, max);
    case Codec::kSnappy: return unsnap(packed, max);
    case Codec::kLz4: return unlz4(packed, max);
    case Codec::kZstd: return unzstd(packed, max);
  }
  return fail(ErrorKind::kInvalid, fmt::format("codec {} does not exist", static_cast<int>(codec)));
}

}  // namespace weir::wire
