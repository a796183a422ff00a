#include "runtime/file.h"

#include <fmt/format.h>

namespace weir::runtime {

Result<void> File::append(ByteView bytes) {
  return size().and_then([&](std::uint64_t end) { return write_at(end, bytes); });
}

Result<std::uint64_t> File::size() const {
  return status().map([](const FileStatus& s) { return s.size; });
}

Result<void> FileSystem::make_directories(const Path& directory) {
  if (directory.empty() || exists(directory)) return {};
  const Path parent = directory.parent_path();
  if (parent != directory) {
    if (auto made = make_directories(parent); !made) return made;
  }
  return make_directory(directory).and_then([&] { return sync_directory(parent.empty() ? Path(".") : parent); });
}

Result<void> FileSystem::remove_all(const Path& directory) {
  auto entries = list(directory);
  if (!entries) {
    if (entries.error().kind == ErrorKind::kNotFound) return {};
    return tl::unexpected(entries.error());
  }
  for (const auto& entry : *entries) {
    const Path path = directory / entry.name;
    auto removed = entry.type == FileType::kDirectory ? remove_all(path) : remove(path);
    if (!removed) return removed;
  }
  return remove(directory);
}

Result<ByteBuffer> FileSystem::read_all(const Path& path, Bytes limit) {
  auto file = open(path, OpenMode::kRead);
  if (!file) return tl::unexpected(file.error());
  auto size = (*file)->size();
  if (!size) return tl::unexpected(size.error());
  if (*size > limit)
    return fail(ErrorKind::kInvalid,
                fmt::format("{}: {} bytes, more than the {} expected", path.string(), *size, limit));
  ByteBuffer bytes(*size);
  auto read = (*file)->read_at(0, bytes);
  if (!read) return tl::unexpected(read.error());
  bytes.resize(*read);
  return bytes;
}

Result<void> FileSystem::replace(const Path& path, ByteView bytes) {
  Path beside = path;
  beside += ".tmp";
  auto file = open(beside, OpenMode::kCreateEmpty);
  if (!file) return tl::unexpected(file.error());
  return (*file)
      ->write_at(0, bytes)
      .and_then([&] { return (*file)->sync(); })
      .and_then([&] { return rename(beside, path); })
      .and_then([&] { return sync_directory(path.has_parent_path() ? path.parent_path() : Path(".")); });
}

}  // namespace weir::runtime
