// One segment of a log: a .log file of batches with its .index and .timeindex.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/file.h"
#include "storage/file_cache.h"
#include "storage/sparse_index.h"
#include "wire/record_batch.h"

namespace weir::storage {

/// "00000000000000000042.log": the name of a file that begins at an offset.
std::string file_name(Offset base, std::string_view extension);

/// Owned with its log. Files are opened when needed and may be closed by the cache at any time.
class Segment {
 public:
  /// A place in the .log file between two batches, and the offset that begins there.
  struct Boundary {
    std::uint64_t position = 0;
    Offset offset;
  };
  /// What recover() found.
  struct Recovered {
    std::uint64_t scanned = 0;
    std::uint64_t cut = 0;
    bool reindexed = false;
  };

  /// `directory` must outlive it. `index_interval`: bytes of log per index entry.
  Segment(FileCache& cache, const runtime::Path& directory, Offset base, Bytes index_interval);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Offset base() const { return base_; }
  /// The offset after the last batch.
  Offset end() const { return end_; }
  std::uint64_t size() const { return size_; }
  bool index_full(Bytes index_bytes) const;
  runtime::Path path(std::string_view extension) const { return directory_ / file_name(base_, extension); }

  // ---- Becoming known: one of these first
  /// Makes the empty file. Its name is durable once the directory is synced.
  Result<void> create();
  /// A segment that lies below the recovery point and ends where the next one begins: nothing is read.
  Result<void> trust(Offset end);
  /// Walks from the last indexed batch below `trusted_below`, checks every batch at or above that, cuts off what is no
  /// whole valid batch and leaves indexes that fit.
  Result<Recovered> recover(Offset trusted_below);

  // ---- Writing: the last segment only
  /// Writes at the end, all or nothing. kClosed: what could not be written could not be taken back either.
  Result<std::shared_ptr<runtime::File>> append(std::span<const ByteView> pieces);
  /// Counts a batch that was just appended, in order.
  void appended(const wire::BatchHeader& batch);
  /// The last time-index entry, so that the largest timestamp can be read back; before a roll and at a clean stop.
  void seal();
  /// Writes pending index entries to the page cache; the files written, to be synced.
  Result<std::vector<std::shared_ptr<runtime::File>>> flush_indexes();

  // ---- Reading
  Result<std::shared_ptr<runtime::File>> log_file();
  /// Where the batch begins that holds `offset`, or the first one after it; size() when there is none.
  Result<std::uint64_t> seek(Offset offset);
  /// The last boundary from `from` on that lies at most at `limit` and ends batches below `up_to` only.
  Result<Boundary> last_boundary(Boundary from, std::uint64_t limit, Offset up_to);
  /// Timestamp of the first batch, for rolling by age; none when empty.
  Result<std::optional<std::int64_t>> first_timestamp();
  /// The largest timestamp and the last offset of the batch that has it; key -1 when empty.
  struct Largest {
    std::int64_t timestamp = -1;
    Offset offset = kNoOffset;
  };
  Result<Largest> largest_timestamp();
  /// A position from which the first record at or after `unix_ms` can be found by walking.
  Result<std::uint64_t> seek_timestamp(std::int64_t unix_ms);

 private:
  std::uint64_t key(IndexKind kind) const { return keys_ + (kind == IndexKind::kOffset ? 1 : 2); }
  Result<std::shared_ptr<runtime::File>> index_file(IndexKind kind, runtime::OpenMode mode);
  Result<void> load(SparseIndex& index, IndexKind kind);
  Result<std::shared_ptr<runtime::File>> stored(const SparseIndex& index, IndexKind kind);
  Result<void> load_indexes();
  Result<void> reindex();
  void note(const wire::BatchHeader& batch, std::uint64_t position);
  Result<std::optional<std::uint64_t>> indexed_position(Offset offset);
  Result<std::optional<Boundary>> trusted_start(Offset trusted_below);
  Result<bool> time_entry_holds(const IndexEntry& entry);
  Result<std::uint64_t> walk_to(std::uint64_t from, Offset offset);

  FileCache& cache_;
  const runtime::Path& directory_;
  const Offset base_;
  const Bytes index_interval_;
  const std::uint64_t keys_;  // of the .log, .index and .timeindex in the cache
  std::uint64_t size_ = 0;
  Offset end_;
  SparseIndex offsets_{IndexKind::kOffset};
  SparseIndex times_{IndexKind::kTime};
  bool indexes_known_ = false;  // loaded or built
  bool largest_known_ = false;  // of all batches
  Largest largest_;
  std::optional<std::int64_t> first_timestamp_;
  Bytes since_index_ = 0;  // bytes since the last index entry
};

}  // namespace weir::storage
