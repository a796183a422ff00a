// A file system in memory for tests: it forgets what was not synced when told to crash, and fails on request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/file.h"

namespace weir::runtime {

/// Any thread, one lock. Paths are absolute or not, as given; parents must be made before files, as on a real one.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  Result<std::shared_ptr<File>> open(const Path& path, OpenMode mode) override;
  Result<FileStatus> status(const Path& path) override;
  Result<void> rename(const Path& from, const Path& to) override;
  Result<void> remove(const Path& path) override;
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override;
  Result<void> make_directory(const Path& directory) override;
  Result<void> sync_directory(const Path& directory) override;
  Result<std::unique_ptr<FileLock>> lock(const Path& path) override;
  Result<std::uint64_t> free_space(const Path& path) override;

  /// Power cut. Each file keeps what was synced and, by `seed`, some first part of the later writes (the last of them
  /// torn, or its length there but zeros in place of its bytes); each directory keeps what was synced and some first
  /// part of the later creates, renames and removes. Locks are free again; files opened before only answer kClosed.
  void crash(std::uint64_t seed);
  /// Like kill -9: nothing is lost, but locks are free and the open files only answer kClosed.
  void kill();

  // Faults. Each stays until taken back.
  /// The `nth` sync from now fails (1 = the next one), of files whose name contains `name`; 0 takes it back. As in the
  /// kernel, the bytes it should have saved are then lost at a crash although later syncs succeed.
  void fail_sync(std::size_t nth, std::string name = "");
  /// The `nth` sync_directory() from now fails, 0 takes it back. What it should have saved may or may not be there
  /// after a crash.
  void fail_directory_sync(std::size_t nth);
  /// Room for this many more bytes; a write that does not fit is done in part and answers kNoSpace. nullopt: endless.
  void set_free_space(std::optional<std::uint64_t> bytes);
  /// The write that passes this many more bytes is done in part and answers kIo, once. nullopt takes it back.
  void fail_write_after(std::optional<std::uint64_t> bytes);
  /// Called at the start of each sync, outside the lock, on the syncing thread: to delay it or to look at the world.
  void on_sync(std::function<void(const Path&)> hook);

  /// What was done since the start.
  struct Counts {
    std::size_t opens = 0, syncs = 0, directory_syncs = 0;
    std::uint64_t bytes_read = 0, bytes_written = 0;
  };
  Counts counts() const;
  /// Files that are open now.
  std::size_t open_files() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::runtime
