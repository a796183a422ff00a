// Bytes: views, shared immutable buffers, and what a reply is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/types.h"

namespace weir {

/// Bytes somebody else owns.
using ByteView = std::span<const std::byte>;
/// Bytes we own and may still change.
using ByteBuffer = std::vector<std::byte>;

inline ByteView as_bytes(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }
inline std::string_view as_text(ByteView b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
inline ByteBuffer to_buffer(ByteView b) { return {b.begin(), b.end()}; }

/// A slice of an immutable buffer that keeps the buffer alive. Cheap to copy, safe to pass between threads.
class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(ByteBuffer buffer) : owner_(std::make_shared<const ByteBuffer>(std::move(buffer))) {
    view_ = ByteView(*std::static_pointer_cast<const ByteBuffer>(owner_));
  }
  /// A view into whatever `owner` keeps alive.
  SharedBytes(std::shared_ptr<const void> owner, ByteView view) : owner_(std::move(owner)), view_(view) {}

  ByteView view() const { return view_; }
  Bytes size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  SharedBytes slice(Bytes offset, Bytes length) const { return {owner_, view_.subspan(offset, length)}; }

 private:
  std::shared_ptr<const void> owner_;
  ByteView view_;
};

/// A file that can be read at any position, from any thread. What a FileRange points into.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Fills `out` from `position`; returns how much was there (less than asked only at the end of the file).
  virtual Result<Bytes> read_at(std::uint64_t position, std::span<std::byte> out) const = 0;
  /// The descriptor for sendfile(2), or -1 when the file is not a real one (tests): then copy with read_at.
  virtual int descriptor() const = 0;
};

/// Bytes that stay on disk until the socket takes them.
struct FileRange {
  std::shared_ptr<const ReadableFile> file;
  std::uint64_t position = 0;
  Bytes length = 0;
};

/// What is sent: pieces in memory and pieces still in files, in order. Owned by one loop at a time.
class Payload {
 public:
  using Piece = std::variant<SharedBytes, FileRange>;

  void append(SharedBytes bytes) {
    size_ += bytes.size();
    if (!bytes.empty()) pieces_.emplace_back(std::move(bytes));
  }
  void append(ByteBuffer buffer) { append(SharedBytes(std::move(buffer))); }
  void append(FileRange range) {
    size_ += range.length;
    if (range.length > 0) pieces_.emplace_back(std::move(range));
  }
  void append(Payload other) {
    for (auto& piece : other.pieces_) pieces_.push_back(std::move(piece));
    size_ += other.size_;
  }

  const std::vector<Piece>& pieces() const { return pieces_; }
  Bytes size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Everything in one buffer: for tests, TLS and disk formats. Fails when a file cannot be read or is shorter than
  /// said.
  Result<ByteBuffer> flatten() const;

 private:
  std::vector<Piece> pieces_;
  Bytes size_ = 0;
};

}  // namespace weir
