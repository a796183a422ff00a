// A segment's .index or .timeindex file: one entry for every few KiB of log, in Kafka's formats.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/file.h"

namespace weir::storage {

/// Offset index: key = offset relative to the segment's base (4 bytes), value = position in the .log file. Time index:
/// key = Unix ms (8 bytes), value = relative offset. Both grow along the file.
struct IndexEntry {
  std::int64_t key = 0;
  std::int32_t value = 0;
};

enum class IndexKind { kOffset, kTime };

/// Entries stay in memory until flushed, so that an append costs no extra write; the others are searched in the file.
/// Owned with its segment. An index is a hint that may be damaged: whoever uses an entry checks it against the log.
class SparseIndex {
 public:
  explicit SparseIndex(IndexKind kind) : kind_(kind) {}

  static constexpr Bytes entry_size(IndexKind kind) { return kind == IndexKind::kOffset ? 8 : 12; }

  /// Takes over what a file holds. kInvalid when its size is not a whole number of entries or its last entries do not
  /// grow.
  Result<void> load(const runtime::File& file);
  /// Drops everything; the file follows at the next flush.
  void clear();
  /// Drops the entries after the first `count`.
  Result<void> keep(const runtime::File& file, std::size_t count);

  void append(IndexEntry entry);
  std::size_t size() const { return stored_ + pending_.size(); }
  const std::optional<IndexEntry>& last() const { return last_; }

  /// How many entries have a key (a value) of at most `most`.
  Result<std::size_t> count_keys(const runtime::File* file, std::int64_t most) const;
  Result<std::size_t> count_values(const runtime::File* file, std::int64_t most) const;
  Result<IndexEntry> at(const runtime::File* file, std::size_t i) const;
  /// `file` may be null while nothing is stored.
  bool needs_file() const { return stored_ > 0; }

  bool dirty() const { return !pending_.empty() || rewrite_; }
  /// Writes what is pending to the page cache.
  Result<void> flush(runtime::File& file);

 private:
  Result<std::size_t> count(const runtime::File* file, const std::function<bool(const IndexEntry&)>& within) const;

  const IndexKind kind_;
  bool rewrite_ = false;    // the file holds entries that were dropped
  std::size_t stored_ = 0;  // entries in the file
  std::vector<IndexEntry> pending_;
  std::optional<IndexEntry> last_;
};

}  // namespace weir::storage
