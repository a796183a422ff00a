#include "base/bytes.h"

namespace weir {

Result<ByteBuffer> Payload::flatten() const {
  ByteBuffer out;
  out.reserve(size_);
  for (const Piece& piece : pieces_) {
    if (const auto* bytes = std::get_if<SharedBytes>(&piece)) {
      out.insert(out.end(), bytes->view().begin(), bytes->view().end());
      continue;
    }
    const auto& range = std::get<FileRange>(piece);
    const Bytes start = out.size();
    out.resize(start + range.length);
    auto got = range.file->read_at(range.position, std::span(out).subspan(start));
    if (!got) return tl::unexpected(got.error());
    if (*got != range.length) return fail(ErrorKind::kIo, "file ends before the range that was promised");
  }
  return out;
}

}  // namespace weir
