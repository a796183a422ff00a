#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/file.h"

namespace weir::runtime {
namespace {

tl::unexpected<Error> failed(const char* what, const Path& path, int error = errno) {
  ErrorKind kind = ErrorKind::kIo;
  if (error == ENOENT || error == ENOTDIR) kind = ErrorKind::kNotFound;
  if (error == EEXIST) kind = ErrorKind::kExists;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) kind = ErrorKind::kNoSpace;
  return fail(kind, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error)));
}

WallTime wall(std::int64_t seconds, std::uint32_t nanoseconds) {
  return WallTime(std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds));
}

Result<FileStatus> status_of(int directory, const char* name, int flags, const Path& path) {
  struct statx s{};
  if (::statx(directory, name, flags, STATX_BASIC_STATS | STATX_BTIME, &s) != 0) return failed("look at", path);
  FileStatus status;
  status.type = S_ISREG(s.stx_mode)   ? FileType::kRegular
                : S_ISDIR(s.stx_mode) ? FileType::kDirectory
                                      : FileType::kOther;
  status.size = s.stx_size;
  status.device = (std::uint64_t{s.stx_dev_major} << 32) | s.stx_dev_minor;
  status.inode = s.stx_ino;
  status.links = s.stx_nlink;
  status.modified = wall(s.stx_mtime.tv_sec, s.stx_mtime.tv_nsec);
  if (s.stx_mask & STATX_BTIME) status.birth = wall(s.stx_btime.tv_sec, s.stx_btime.tv_nsec);
  return status;
}

class PosixFile final : public File {
 public:
  PosixFile(int descriptor, Path path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~PosixFile() override { ::close(descriptor_); }

  int descriptor() const override { return descriptor_; }

  Result<Bytes> read_at(std::uint64_t position, std::span<std::byte> out) const override {
    Bytes done = 0;
    while (done < out.size()) {
      const ssize_t n = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(position + done));
      if (n == 0) break;
      if (n < 0) {
        if (errno == EINTR) continue;
        return failed("read", path_);
      }
      done += static_cast<Bytes>(n);
    }
    return done;
  }

  using File::write_at;
  Result<void> write_at(std::uint64_t position, std::span<const ByteView> pieces) override {
    std::array<iovec, 64> vector;
    std::size_t next = 0;  // the first piece not written whole
    Bytes skip = 0;        // how much of it is written
    while (true) {
      int count = 0;
      for (std::size_t i = next; i < pieces.size() && count < static_cast<int>(vector.size()); ++i) {
        const ByteView piece = i == next ? pieces[i].subspan(skip) : pieces[i];
        if (!piece.empty()) vector[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
      }
      if (count == 0) return {};
      const ssize_t n = ::pwritev(descriptor_, vector.data(), count, static_cast<off_t>(position));
      if (n < 0) {
        if (errno == EINTR) continue;
        return failed("write to", path_);
      }
      position += static_cast<std::uint64_t>(n);
      for (Bytes left = static_cast<Bytes>(n); next < pieces.size();) {
        const Bytes rest = pieces[next].size() - skip;
        if (left < rest) {
          skip += left;
          break;
        }
        left -= rest;
        skip = 0;
        ++next;
      }
    }
  }

  Result<void> sync() override {
    if (::fdatasync(descriptor_) != 0) return failed("sync", path_);
    return {};
  }
  Result<void> truncate(std::uint64_t size) override {
    if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) return failed("truncate", path_);
    return {};
  }
  Result<FileStatus> status() const override { return status_of(descriptor_, "", AT_EMPTY_PATH, path_); }

 private:
  const int descriptor_;
  const Path path_;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(int descriptor) : descriptor_(descriptor) {}
  ~PosixLock() override { ::close(descriptor_); }

 private:
  const int descriptor_;
};

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::shared_ptr<File>> open(const Path& path, OpenMode mode) override {
    int flags = O_CLOEXEC;
    switch (mode) {
      // Nothing of what is named may hold the caller up: opening a pipe would wait for its writer.
      case OpenMode::kRead: flags |= O_RDONLY | O_NONBLOCK; break;
      case OpenMode::kWrite: flags |= O_RDWR; break;
      case OpenMode::kCreate: flags |= O_RDWR | O_CREAT; break;
      case OpenMode::kCreateNew: flags |= O_RDWR | O_CREAT | O_EXCL; break;
      case OpenMode::kCreateEmpty: flags |= O_RDWR | O_CREAT | O_TRUNC; break;
    }
    const int descriptor = ::open(path.c_str(), flags, 0644);
    if (descriptor < 0) return failed("open", path);
    return std::make_shared<PosixFile>(descriptor, path);
  }

  Result<FileStatus> status(const Path& path) override { return status_of(AT_FDCWD, path.c_str(), 0, path); }

  Result<void> rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from);
    return {};
  }

  Result<void> remove(const Path& path) override {
    if (::remove(path.c_str()) != 0 && errno != ENOENT) return failed("remove", path);
    return {};
  }

  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    DIR* stream = ::opendir(directory.c_str());
    if (stream == nullptr) return failed("list", directory);
    std::vector<DirectoryEntry> entries;
    for (const dirent* e = ::readdir(stream); e != nullptr; e = ::readdir(stream)) {
      const std::string_view name = e->d_name;
      if (name == "." || name == "..") continue;
      FileType type = e->d_type == DT_REG   ? FileType::kRegular
                      : e->d_type == DT_DIR ? FileType::kDirectory
                                            : FileType::kOther;
      if (e->d_type == DT_UNKNOWN || e->d_type == DT_LNK) {
        if (auto status = this->status(directory / e->d_name)) type = status->type;
      }
      entries.push_back({std::string(name), type});
    }
    ::closedir(stream);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  Result<void> make_directory(const Path& directory) override {
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return failed("make", directory);
    return {};
  }

  Result<void> sync_directory(const Path& directory) override {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return failed("open", directory);
    const int synced = ::fsync(descriptor);
    const int error = errno;
    ::close(descriptor);
    if (synced != 0) return failed("sync", directory, error);
    return {};
  }

  Result<std::unique_ptr<FileLock>> lock(const Path& path) override {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return failed("open", path);
    auto lock = std::make_unique<PosixLock>(descriptor);
    char holder[32] = {};
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return failed("lock", path);
      const ssize_t n = ::pread(descriptor, holder, sizeof holder - 1, 0);
      std::string who(holder, n > 0 ? static_cast<std::size_t>(n) : 0);
      std::erase(who, '\n');
      return fail(ErrorKind::kExists, fmt::format("{} is in use by process {}: stop it or name another directory",
                                                  path.has_parent_path() ? path.parent_path().string() : path.string(),
                                                  who.empty() ? "unknown" : who));
    }
    const std::string id = fmt::format("{}\n", ::getpid());
    if (::ftruncate(descriptor, 0) != 0 || ::pwrite(descriptor, id.data(), id.size(), 0) < 0)
      return failed("write to", path);
    return lock;
  }

  Result<std::uint64_t> free_space(const Path& path) override {
    struct statvfs s{};
    if (::statvfs(path.c_str(), &s) != 0) return failed("look at", path);
    return std::uint64_t{s.f_bavail} * s.f_frsize;
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem system;
  return system;
}

}  // namespace weir::runtime
