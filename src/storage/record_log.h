// A small file of checksummed records, for state that is read whole at start: topics, settings, quotas, producer-id
// blocks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/file.h"
#include "storage/disk_work.h"

namespace weir::storage {

/// Payloads are opaque. Owned by one loop; the DiskWork it gives may run elsewhere. A payload counts only once the work
/// of a prepare_sync() made after its append has succeeded.
class RecordLog {
 public:
  static constexpr Bytes kMaxPayload = 16 * kMiB;

  /// Opens or makes the file and gives every whole record, in order, to `replay`. A torn tail is cut; damage before
  /// whole records is skipped with an error line. An error from `replay` ends the opening with it. Blocks on the disk:
  /// for start-up.
  static Result<RecordLog> open(runtime::FileSystem& files, const runtime::Path& path,
                                const std::function<Result<void>(ByteView payload)>& replay);

  /// Writes to the page cache. kNoSpace and kIo leave the log as it was.
  Result<void> append(ByteView payload);
  /// Makes what was appended so far durable.
  DiskWork prepare_sync();
  /// append() and sync in one, for start-up and tools.
  Result<void> append_durably(ByteView payload);
  /// Replaces all records by these, atomically and durably: to throw away what was overwritten. Blocks on the disk.
  Result<void> rewrite(std::span<const ByteBuffer> payloads);

  std::uint64_t size() const { return size_; }
  std::size_t records() const { return records_; }

 private:
  RecordLog(runtime::FileSystem& files, runtime::Path path) : files_(&files), path_(std::move(path)) {}
  runtime::FileSystem* files_;
  runtime::Path path_;
  std::shared_ptr<runtime::File> file_;
  std::uint64_t size_ = 0;
  std::size_t records_ = 0;
};

}  // namespace weir::storage
