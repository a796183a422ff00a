#include "storage/file_cache.h"

namespace weir::storage {

std::shared_ptr<runtime::File> FileCache::find(std::uint64_t key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->second;
}

Result<std::shared_ptr<runtime::File>> FileCache::open(std::uint64_t key, const runtime::Path& path,
                                                       runtime::OpenMode mode) {
  if (auto file = find(key)) return file;
  auto file = files_.open(path, mode);
  if (!file) return file;
  recent_.emplace_front(key, *file);
  by_key_[key] = recent_.begin();
  if (recent_.size() > capacity_) {
    by_key_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return file;
}

void FileCache::forget(std::uint64_t key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  recent_.erase(found->second);
  by_key_.erase(found);
}

}  // namespace weir::storage
