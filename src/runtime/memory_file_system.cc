#include "runtime/memory_file_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <variant>

namespace weir::runtime {
namespace {

/// One change of a file's bytes that is not yet on disk.
struct Write {
  std::uint64_t position = 0;
  ByteBuffer bytes;
};
struct Truncate {
  std::uint64_t size = 0;
};
using FileChange = std::variant<Write, Truncate>;

void enact(ByteBuffer& content, std::uint64_t position, ByteView bytes) {
  if (content.size() < position + bytes.size()) content.resize(position + bytes.size());
  std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<std::ptrdiff_t>(position));
}
void enact(ByteBuffer& content, const FileChange& change) {
  if (const auto* write = std::get_if<Write>(&change))
    enact(content, write->position, write->bytes);
  else
    content.resize(std::get<Truncate>(change).size);
}

struct Node;
using Entries = std::map<std::string, std::shared_ptr<Node>>;
/// One change of a directory: names and what they then stand for (nothing: removed).
using EntryChange = std::vector<std::pair<std::string, std::shared_ptr<Node>>>;

void enact(Entries& entries, const EntryChange& change) {
  for (const auto& [name, node] : change) {
    if (node)
      entries[name] = node;
    else
      entries.erase(name);
  }
}

/// A file or a directory: as programs see it, as the disk has it, and the changes between the two.
struct Node {
  FileType type = FileType::kRegular;
  std::uint64_t id = 0;
  ByteBuffer content, durable_content;
  std::vector<FileChange> changes;
  std::int64_t modified = 0;  // how often
  Entries entries, durable_entries;
  std::vector<EntryChange> entry_changes;

  void change(EntryChange c) {
    enact(entries, c);
    entry_changes.push_back(std::move(c));
  }
  void changed(FileChange c) {
    ++modified;
    changes.push_back(std::move(c));
  }
};

template <typename T>
Result<T> not_found(const Path& path) {
  return fail(ErrorKind::kNotFound, fmt::format("{}: no such file or directory", path.string()));
}

}  // namespace

struct MemoryFileSystem::State {
  std::mutex mutex;
  std::shared_ptr<Node> root = std::make_shared<Node>();
  std::uint64_t generation = 0;  // of open files and locks
  std::uint64_t last_id = 0;
  std::set<std::string> locks;
  std::size_t open_files = 0;
  Counts counts;

  std::size_t failing_sync = 0, failing_directory_sync = 0;
  std::string failing_name;
  std::optional<std::uint64_t> free_space, write_budget;
  std::function<void(const Path&)> hook;

  std::shared_ptr<Node> find(const Path& path) {
    std::shared_ptr<Node> node = root;
    for (const Path& part : path.lexically_normal()) {
      if (part == "/" || part == "." || part.empty()) continue;
      const auto entry = node->entries.find(part.string());
      if (entry == node->entries.end()) return nullptr;
      node = entry->second;
    }
    return node;
  }
  std::shared_ptr<Node> parent(const Path& path) {
    auto node = find(path.lexically_normal().parent_path());
    return node && node->type == FileType::kDirectory ? node : nullptr;
  }
  std::shared_ptr<Node> make(FileType type) {
    auto node = std::make_shared<Node>();
    node->type = type;
    node->id = ++last_id;
    return node;
  }
  void forget_handles() {
    ++generation;
    locks.clear();
    open_files = 0;
  }
  static std::uint64_t names_of(const Node& directory, const Node& node) {
    std::uint64_t names = 0;
    for (const auto& [name, child] : directory.entries) names += child.get() == &node ? 1 : names_of(*child, node);
    return names;
  }
  FileStatus status(const Node& node) {
    FileStatus s;
    s.type = node.type;
    s.size = node.content.size();
    s.device = 1;
    s.inode = node.id;
    s.links = names_of(*root, node);
    s.birth = WallTime(Duration(node.id));  // these two tell the order, not the time
    s.modified = WallTime(Duration(node.modified));
    return s;
  }

  void crash(Node& node, std::mt19937_64& random) {
    const auto some = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
    if (node.type == FileType::kDirectory) {
      node.entry_changes.resize(some(node.entry_changes.size()));
      for (const auto& change : node.entry_changes) enact(node.durable_entries, change);
      node.entry_changes.clear();
      node.entries = node.durable_entries;
      for (auto& [name, child] : node.entries) crash(*child, random);
      return;
    }
    const std::size_t kept = some(node.changes.size());
    for (std::size_t i = 0; i < kept; ++i) enact(node.durable_content, node.changes[i]);
    if (kept < node.changes.size()) {
      if (auto* torn = std::get_if<Write>(&node.changes[kept])) {
        const std::size_t whole = some(torn->bytes.size());
        if (some(2) == 0)
          std::fill(torn->bytes.begin() + static_cast<std::ptrdiff_t>(whole), torn->bytes.end(), std::byte{0});
        else
          torn->bytes.resize(whole);
        enact(node.durable_content, *torn);
      }
    }
    node.changes.clear();
    node.content = node.durable_content;
  }

  /// How many of `wanted` bytes may be written, and why not more.
  std::pair<Bytes, std::optional<ErrorKind>> allowed(Bytes wanted, Bytes growth) {
    if (write_budget && wanted > *write_budget) {
      const Bytes some = *write_budget;
      write_budget.reset();
      return {some, ErrorKind::kIo};
    }
    if (write_budget) *write_budget -= wanted;
    if (free_space && growth > *free_space) {
      const Bytes some = wanted - growth + *free_space;
      free_space = 0;
      return {some, ErrorKind::kNoSpace};
    }
    if (free_space) *free_space -= growth;
    return {wanted, std::nullopt};
  }
};

namespace {

class MemoryLock final : public FileLock {
 public:
  explicit MemoryLock(std::function<void()> release) : release_(std::move(release)) {}
  ~MemoryLock() override { release_(); }

 private:
  std::function<void()> release_;
};

/// `State` is MemoryFileSystem's, which only its members may name.
template <typename State>
class MemoryFile final : public File {
 public:
  MemoryFile(std::shared_ptr<State> state, std::shared_ptr<Node> node, Path path)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(path)), generation_(state_->generation) {}
  ~MemoryFile() override {
    std::lock_guard lock(state_->mutex);
    if (generation_ == state_->generation) --state_->open_files;
  }
  int descriptor() const override { return -1; }

  Result<Bytes> read_at(std::uint64_t position, std::span<std::byte> out) const override {
    std::lock_guard lock(state_->mutex);
    if (auto open = check(); !open) return tl::unexpected(open.error());
    if (position >= node_->content.size()) return Bytes{0};
    const Bytes n = std::min<Bytes>(out.size(), node_->content.size() - position);
    std::memcpy(out.data(), node_->content.data() + position, n);
    state_->counts.bytes_read += n;
    return n;
  }

  Result<void> write_at(std::uint64_t position, std::span<const ByteView> pieces) override {
    ByteBuffer bytes;
    for (const ByteView piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
    std::lock_guard lock(state_->mutex);
    if (auto open = check(); !open) return open;
    const std::uint64_t end = position + bytes.size();
    const Bytes growth = end > node_->content.size() ? std::min<Bytes>(bytes.size(), end - node_->content.size()) : 0;
    const auto [some, error] = state_->allowed(bytes.size(), growth);
    bytes.resize(some);
    state_->counts.bytes_written += some;
    enact(node_->content, position, bytes);
    node_->changed(Write{position, std::move(bytes)});
    if (error)
      return fail(*error, fmt::format("cannot write to {}: {}", path_.string(),
                                      *error == ErrorKind::kIo ? "I/O error" : "no space left"));
    return {};
  }

  Result<void> sync() override {
    std::function<void(const Path&)> hook;
    {
      std::lock_guard lock(state_->mutex);
      hook = state_->hook;
    }
    if (hook) hook(path_);
    std::lock_guard lock(state_->mutex);
    if (auto open = check(); !open) return open;
    ++state_->counts.syncs;
    const bool counted = state_->failing_sync > 0 && path_.string().find(state_->failing_name) != std::string::npos;
    if (counted) --state_->failing_sync;
    if (counted && state_->failing_sync == 0) {
      node_->changes.clear();  // as the kernel does: the pages are clean now, and never were written
      return fail(ErrorKind::kIo, fmt::format("cannot sync {}: I/O error", path_.string()));
    }
    for (const auto& change : node_->changes) enact(node_->durable_content, change);
    node_->changes.clear();
    return {};
  }

  Result<void> truncate(std::uint64_t size) override {
    std::lock_guard lock(state_->mutex);
    if (auto open = check(); !open) return open;
    if (state_->free_space && size < node_->content.size()) *state_->free_space += node_->content.size() - size;
    node_->content.resize(size);
    node_->changed(Truncate{size});
    return {};
  }

  Result<FileStatus> status() const override {
    std::lock_guard lock(state_->mutex);
    if (auto open = check(); !open) return tl::unexpected(open.error());
    return state_->status(*node_);
  }

 private:
  Result<void> check() const {
    if (generation_ == state_->generation) return {};
    return fail(ErrorKind::kClosed, fmt::format("{} was open in a process that is gone", path_.string()));
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Node> node_;
  const Path path_;
  const std::uint64_t generation_;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem() : state_(std::make_shared<State>()) { state_->root->type = FileType::kDirectory; }
MemoryFileSystem::~MemoryFileSystem() = default;

Result<std::shared_ptr<File>> MemoryFileSystem::open(const Path& path, OpenMode mode) {
  std::lock_guard lock(state_->mutex);
  const auto parent = state_->parent(path);
  if (!parent) return not_found<std::shared_ptr<File>>(path);
  const std::string name = path.filename().string();
  auto entry = parent->entries.find(name);
  if (entry == parent->entries.end()) {
    if (mode == OpenMode::kRead || mode == OpenMode::kWrite) return not_found<std::shared_ptr<File>>(path);
    parent->change({{name, state_->make(FileType::kRegular)}});
    entry = parent->entries.find(name);
  } else if (mode == OpenMode::kCreateNew) {
    return fail(ErrorKind::kExists, fmt::format("{} exists", path.string()));
  } else if (entry->second->type == FileType::kDirectory) {
    return fail(ErrorKind::kIo, fmt::format("{} is a directory", path.string()));
  } else if (mode == OpenMode::kCreateEmpty) {
    entry->second->content.clear();
    entry->second->changed(Truncate{0});
  }
  ++state_->counts.opens;
  ++state_->open_files;
  return std::make_shared<MemoryFile<State>>(state_, entry->second, path);
}

Result<FileStatus> MemoryFileSystem::status(const Path& path) {
  std::lock_guard lock(state_->mutex);
  const auto node = state_->find(path);
  if (!node) return not_found<FileStatus>(path);
  return state_->status(*node);
}

Result<void> MemoryFileSystem::rename(const Path& from, const Path& to) {
  std::lock_guard lock(state_->mutex);
  const auto source = state_->parent(from);
  const auto target = state_->parent(to);
  const auto node = state_->find(from);
  if (!source || !target || !node) return not_found<void>(from);
  const std::pair removed{from.filename().string(), std::shared_ptr<Node>()};
  const std::pair added{to.filename().string(), node};
  if (source == target) {
    source->change({removed, added});
  } else {
    target->change({added});
    source->change({removed});
  }
  return {};
}

Result<void> MemoryFileSystem::remove(const Path& path) {
  std::lock_guard lock(state_->mutex);
  const auto node = state_->find(path);
  if (!node) return {};
  if (!node->entries.empty()) return fail(ErrorKind::kIo, fmt::format("{} is not empty", path.string()));
  state_->parent(path)->change({{path.filename().string(), nullptr}});
  if (state_->free_space) *state_->free_space += node->content.size();
  return {};
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const Path& directory) {
  std::lock_guard lock(state_->mutex);
  const auto node = state_->find(directory);
  if (!node) return not_found<std::vector<DirectoryEntry>>(directory);
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : node->entries) entries.push_back({name, child->type});
  return entries;
}

Result<void> MemoryFileSystem::make_directory(const Path& directory) {
  std::lock_guard lock(state_->mutex);
  if (state_->find(directory)) return {};
  const auto parent = state_->parent(directory);
  if (!parent) return not_found<void>(directory);
  parent->change({{directory.filename().string(), state_->make(FileType::kDirectory)}});
  return {};
}

Result<void> MemoryFileSystem::sync_directory(const Path& directory) {
  std::lock_guard lock(state_->mutex);
  const auto node = state_->find(directory);
  if (!node) return not_found<void>(directory);
  ++state_->counts.directory_syncs;
  const std::size_t failing = state_->failing_directory_sync;
  state_->failing_directory_sync -= std::min<std::size_t>(failing, 1);
  if (failing == 1) return fail(ErrorKind::kIo, fmt::format("cannot sync {}: I/O error", directory.string()));
  node->durable_entries = node->entries;
  node->entry_changes.clear();
  return {};
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock(const Path& path) {
  if (auto file = open(path, OpenMode::kCreate); !file) return tl::unexpected(file.error());
  std::lock_guard lock(state_->mutex);
  if (!state_->locks.insert(path.string()).second)
    return fail(ErrorKind::kExists, fmt::format("{} is in use by process 1: stop it or name another directory",
                                                path.parent_path().string()));
  return std::make_unique<MemoryLock>([state = state_, path, generation = state_->generation] {
    std::lock_guard relock(state->mutex);
    if (generation == state->generation) state->locks.erase(path.string());
  });
}

Result<std::uint64_t> MemoryFileSystem::free_space(const Path&) {
  std::lock_guard lock(state_->mutex);
  return state_->free_space.value_or(std::uint64_t{1} << 50);
}

void MemoryFileSystem::crash(std::uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  std::mt19937_64 random(seed);
  state_->crash(*state_->root, random);
  state_->forget_handles();
}

void MemoryFileSystem::kill() {
  std::lock_guard lock(state_->mutex);
  state_->forget_handles();
}

void MemoryFileSystem::fail_directory_sync(std::size_t nth) {
  std::lock_guard lock(state_->mutex);
  state_->failing_directory_sync = nth;
}

void MemoryFileSystem::fail_sync(std::size_t nth, std::string name) {
  std::lock_guard lock(state_->mutex);
  state_->failing_sync = nth;
  state_->failing_name = std::move(name);
}

void MemoryFileSystem::set_free_space(std::optional<std::uint64_t> bytes) {
  std::lock_guard lock(state_->mutex);
  state_->free_space = bytes;
}

void MemoryFileSystem::fail_write_after(std::optional<std::uint64_t> bytes) {
  std::lock_guard lock(state_->mutex);
  state_->write_budget = bytes;
}

void MemoryFileSystem::on_sync(std::function<void(const Path&)> hook) {
  std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

MemoryFileSystem::Counts MemoryFileSystem::counts() const {
  std::lock_guard lock(state_->mutex);
  return state_->counts;
}

std::size_t MemoryFileSystem::open_files() const {
  std::lock_guard lock(state_->mutex);
  return state_->open_files;
}

}  // namespace weir::runtime
