// Open files, the most recently used ones: a broker with thousands of partitions needs few descriptors.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "runtime/file.h"

namespace weir::storage {

/// Owned by the loop that owns the logs. A file that leaves the cache stays open for whoever still holds it.
class FileCache {
 public:
  FileCache(runtime::FileSystem& files, std::size_t capacity) : files_(files), capacity_(capacity) {}

  /// A name for `count` files in a row, never given twice.
  std::uint64_t new_keys(std::uint64_t count) { return std::exchange(next_key_, next_key_ + count); }
  Result<std::shared_ptr<runtime::File>> open(std::uint64_t key, const runtime::Path& path,
                                              runtime::OpenMode mode = runtime::OpenMode::kWrite);
  /// The file if it is open, without touching the disk; makes it the most recent.
  std::shared_ptr<runtime::File> find(std::uint64_t key);
  void forget(std::uint64_t key);

  runtime::FileSystem& files() { return files_; }
  std::size_t size() const { return by_key_.size(); }

 private:
  using Recent = std::list<std::pair<std::uint64_t, std::shared_ptr<runtime::File>>>;
  runtime::FileSystem& files_;
  const std::size_t capacity_;
  std::uint64_t next_key_ = 0;
  Recent recent_;  // the latest first
  std::unordered_map<std::uint64_t, Recent::iterator> by_key_;
};

}  // namespace weir::storage
