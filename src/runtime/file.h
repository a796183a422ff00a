// Files and directories behind one seam, so that tests can lose what was not synced. See memory_file_system.h.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "weir/types.h"

namespace weir::runtime {

using Path = std::filesystem::path;

enum class FileType { kRegular, kDirectory, kOther };

/// What stat says. `device`, `inode` and `birth` tell one file from another that took its name; `birth` is 0 when
/// unknown.
struct FileStatus {
  FileType type = FileType::kRegular;
  std::uint64_t size = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 1;  ///< Names it has; 0: deleted, alive as long as somebody holds it open.
  WallTime modified{};
  WallTime birth{};
};

/// An open file. Positions are given with each call, so threads may read, write and sync the same file at the same
/// time; two writers of one range must agree among themselves. Closed when the last owner lets go.
class File : public ReadableFile {
 public:
  /// Writes the pieces one after the other from `position`, all or an error: kNoSpace or kIo. After an error any part
  /// may have been written: the caller truncates back to what it knows.
  virtual Result<void> write_at(std::uint64_t position, std::span<const ByteView> pieces) = 0;
  Result<void> write_at(std::uint64_t position, ByteView bytes) { return write_at(position, std::span(&bytes, 1)); }
  /// Writes at the end of the file as it is now. For files with one writer.
  Result<void> append(ByteView bytes);
  /// fdatasync: what was written before the call survives a power cut. After a failure nothing written since the last
  /// success may be trusted, and a second try proves nothing (the kernel forgets the dirty pages).
  virtual Result<void> sync() = 0;
  virtual Result<void> truncate(std::uint64_t size) = 0;
  virtual Result<FileStatus> status() const = 0;
  Result<std::uint64_t> size() const;
};

enum class OpenMode {
  kRead,        ///< Must exist.
  kWrite,       ///< Must exist; read and write.
  kCreate,      ///< Read and write; made when missing.
  kCreateNew,   ///< Read and write; kExists when it is there already.
  kCreateEmpty  ///< Read and write; emptied when it is there already.
};

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kRegular;
};

/// Held until destroyed; the kernel frees it when the process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// Everything that is done by name. Any thread. A name is durable only after sync_directory() of the directory that
/// holds it: also after create, rename and remove.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<std::shared_ptr<File>> open(const Path& path, OpenMode mode) = 0;
  /// kNotFound when nothing has that name. Follows symbolic links.
  virtual Result<FileStatus> status(const Path& path) = 0;
  /// Replaces what is at `to`, atomically.
  virtual Result<void> rename(const Path& from, const Path& to) = 0;
  /// Removes a file or an empty directory. Not an error when it is gone already.
  virtual Result<void> remove(const Path& path) = 0;
  /// The names in a directory, sorted.
  virtual Result<std::vector<DirectoryEntry>> list(const Path& directory) = 0;
  /// Makes one directory, not synced. Not an error when it is there.
  virtual Result<void> make_directory(const Path& directory) = 0;
  /// Makes the directory and its parents, and syncs each parent it added to. Not an error when it is there.
  Result<void> make_directories(const Path& directory);
  virtual Result<void> sync_directory(const Path& directory) = 0;
  /// An exclusive lock on `path` (made when missing), which then holds this process's id. kExists names the holder.
  virtual Result<std::unique_ptr<FileLock>> lock(const Path& path) = 0;
  /// Bytes that can still be written to the file system that holds `path`.
  virtual Result<std::uint64_t> free_space(const Path& path) = 0;

  bool exists(const Path& path) { return status(path).has_value(); }
  /// Removes a directory and everything below it.
  Result<void> remove_all(const Path& directory);
  /// The whole file; kInvalid when it is longer than `limit`.
  Result<ByteBuffer> read_all(const Path& path, Bytes limit);
  /// Replaces the file so that after a power cut either the old or the new bytes are there: written beside it, synced,
  /// renamed, directory synced. Blocks on the disk.
  Result<void> replace(const Path& path, ByteView bytes);
};

/// The machine's own. Any thread.
FileSystem& posix_file_system();

}  // namespace weir::runtime
