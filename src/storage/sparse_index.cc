#include "storage/sparse_index.h"

#include <fmt/format.h>

#include <array>

#include "wire/reader.h"
#include "wire/writer.h"

namespace weir::storage {

Result<void> SparseIndex::load(const runtime::File& file) {
  clear();
  rewrite_ = false;
  const auto size = file.size();
  if (!size) return tl::unexpected(size.error());
  if (*size % entry_size(kind_) != 0)
    return fail(ErrorKind::kInvalid, fmt::format("{} bytes are no whole number of entries", *size));
  stored_ = *size / entry_size(kind_);
  if (stored_ == 0) return {};
  const auto last = at(&file, stored_ - 1);
  if (!last) return tl::unexpected(last.error());
  last_ = *last;
  IndexEntry before{.key = 0, .value = -1};
  if (stored_ > 1) {
    const auto entry = at(&file, stored_ - 2);
    if (!entry) return tl::unexpected(entry.error());
    before = *entry;
  }
  if (last->key <= before.key || last->value <= before.value)
    return fail(ErrorKind::kInvalid, "its last entries do not grow");
  return {};
}

void SparseIndex::clear() {
  rewrite_ = true;
  stored_ = 0;
  pending_ = {};
  last_.reset();
}

Result<void> SparseIndex::keep(const runtime::File& file, std::size_t count) {
  if (count >= size()) return {};
  std::optional<IndexEntry> last;
  if (count > 0) {
    const auto entry = at(&file, count - 1);
    if (!entry) return tl::unexpected(entry.error());
    last = *entry;
  }
  rewrite_ |= count < stored_;
  pending_.resize(count > stored_ ? count - stored_ : 0);
  stored_ = std::min(stored_, count);
  last_ = last;
  return {};
}

void SparseIndex::append(IndexEntry entry) {
  pending_.push_back(entry);
  last_ = entry;
}

Result<IndexEntry> SparseIndex::at(const runtime::File* file, std::size_t i) const {
  if (i >= stored_) return pending_[i - stored_];
  std::array<std::byte, 12> bytes;
  const auto entry = std::span(bytes).first(entry_size(kind_));
  const auto n = file->read_at(i * entry.size(), entry);
  if (!n) return tl::unexpected(n.error());
  if (*n < entry.size()) return fail(ErrorKind::kInvalid, "it is shorter than it was");
  wire::Reader in{ByteView(entry)};
  const std::int64_t key = kind_ == IndexKind::kOffset ? in.int32() : in.int64();
  return IndexEntry{key, in.int32()};
}

Result<std::size_t> SparseIndex::count(const runtime::File* file,
                                       const std::function<bool(const IndexEntry&)>& within) const {
  std::size_t low = 0, high = size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const auto entry = at(file, middle);
    if (!entry) return tl::unexpected(entry.error());
    if (within(*entry))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Result<std::size_t> SparseIndex::count_keys(const runtime::File* file, std::int64_t most) const {
  return count(file, [&](const IndexEntry& entry) { return entry.key <= most; });
}

Result<std::size_t> SparseIndex::count_values(const runtime::File* file, std::int64_t most) const {
  return count(file, [&](const IndexEntry& entry) { return entry.value <= most; });
}

Result<void> SparseIndex::flush(runtime::File& file) {
  if (rewrite_) {
    if (auto cut = file.truncate(stored_ * entry_size(kind_)); !cut) return cut;
    rewrite_ = false;
  }
  if (pending_.empty()) return {};
  wire::Writer out(pending_.size() * entry_size(kind_));
  for (const IndexEntry& entry : pending_) {
    if (kind_ == IndexKind::kOffset)
      out.int32(static_cast<std::int32_t>(entry.key));
    else
      out.int64(entry.key);
    out.int32(entry.value);
  }
  if (auto written = file.write_at(stored_ * entry_size(kind_), out.view()); !written) return written;
  stored_ += pending_.size();
  pending_ = {};
  return {};
}

}  // namespace weir::storage
