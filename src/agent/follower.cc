#include "agent/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/log.h"

namespace weir::agent {

namespace {
using runtime::FileStatus;
using runtime::FileType;
using runtime::Path;

constexpr int kDepth = 3;
constexpr Bytes kJudged = 4096;  // first bytes that tell text from binary
constexpr Duration kSoonest = std::chrono::milliseconds(2);
constexpr Duration kLatest = std::chrono::milliseconds(250);

bool is_compressed(const Path& path) {
  for (const char* suffix : {".gz", ".xz", ".bz2", ".zst", ".lz4", ".zip", ".Z", ".lzma"}) {
    if (path.extension() == suffix) return true;
  }
  return false;
}

bool is_below(const Path& path, const Path& directory) {
  const auto inside = path.lexically_normal().lexically_relative(directory.lexically_normal());
  return !inside.empty() && *inside.begin() != "..";
}

/// NULs and other control characters but those that terminals and text files know.
bool looks_binary(std::string_view head) {
  const auto odd = std::count_if(head.begin(), head.end(), [](char c) {
    return std::uint8_t(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\b' && c != '\x1b';
  });
  return head.find('\0') != std::string_view::npos || odd * 10 > std::ptrdiff_t(head.size());
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > 3 ? text + ", ..." : text;
}
}  // namespace

// ---- Finding -------------------------------------------------------------------------------------------------------

std::vector<Follower::Found> Follower::find(Skipped& skipped) {
  std::vector<Found> found;
  for (const Path& path : settings_.paths) {
    auto status = files_.status(path);
    if (!status || status->type != FileType::kDirectory) find_missed(path, status ? &*status : nullptr, found);
    if (!status) {
      if (missing_noted_.insert(path).second) log::info("{}: not there yet, waiting for it", path.string());
    } else if (status->type == FileType::kDirectory) {
      find_in(path, kDepth, found, skipped);
    } else {
      found.push_back({path, *status});
    }
  }
  return found;
}

void Follower::find_in(const Path& directory, int depth, std::vector<Found>& found, Skipped& skipped) {
  const auto entries = files_.list(directory);
  if (!entries) {
    skipped.unreadable.push_back(directory.string());
    return;
  }
  for (const auto& entry : *entries) {
    const Path path = directory / entry.name;
    const bool own = std::any_of(settings_.own_directories.begin(), settings_.own_directories.end(),
                                 [&](const Path& mine) { return is_below(path, mine) || path == mine; });
    if (own) continue;
    if (entry.type == FileType::kDirectory && depth > 0) {
      find_in(path, depth - 1, found, skipped);
    } else if (entry.type == FileType::kRegular) {
      if (is_compressed(path)) {
        skipped.compressed.push_back(path.string());
      } else if (auto status = files_.status(path); status && status->size > 0 && is_text(path, *status, skipped)) {
        found.push_back({path, *status});
      }
    }
  }
}

bool Follower::known(const FileStatus& status) const {
  const auto same = [&](const FileMark& m) { return m.device == status.device && m.inode == status.inode; };
  return std::any_of(open_.begin(), open_.end(), [&](const FilePtr& f) { return f->is(status); }) ||
         std::any_of(closed_.begin(), closed_.end(), [&](const Closed& c) { return same(c.mark); }) ||
         std::any_of(earlier_.begin(), earlier_.end(), same);
}

void Follower::find_missed(const Path& path, const FileStatus* status, std::vector<Found>& found) {
  Lineage& line = lineages_[path];
  const bool changed = line.last && (!status || *line.last != FileKey(status->device, status->inode));
  if (!status && !changed) return;
  const Path directory = path.parent_path().empty() ? Path(".") : path.parent_path();
  const auto entries = files_.list(directory);
  if (!entries) return;
  std::set<FileKey> beside;
  for (const auto& entry : *entries) {
    const std::string stem = path.filename().string();
    const bool relative = entry.name.size() > stem.size() && entry.name.starts_with(stem) &&
                          (entry.name[stem.size()] == '.' || entry.name[stem.size()] == '-');
    if (entry.type != FileType::kRegular || !relative || is_compressed(entry.name)) continue;
    const auto other = files_.status(directory / entry.name);
    if (!other) continue;
    const FileKey key(other->device, other->inode);
    beside.insert(key);
    if (!changed || known(*other) || line.beside.contains(key)) continue;
    // After a restart nobody knows what was there: only what was born after the last one can have had the name.
    const std::int64_t birth = other->birth.time_since_epoch().count();
    if (line.looked || (line.last_birth != 0 && birth > line.last_birth)) {
      found.push_back({directory / entry.name, *other, true});
    }
  }
  line.beside = std::move(beside);
  line.looked = true;
  if (!status) return;
  line.last = FileKey(status->device, status->inode);
  line.last_birth = status->birth.time_since_epoch().count();
}

bool Follower::is_text(const Path& path, const FileStatus& status, Skipped& skipped) {
  const auto key = std::pair(status.device, status.inode);
  auto judged = judged_.find(key);
  if (judged == judged_.end()) {
    const auto file = files_.open(path, runtime::OpenMode::kRead);
    std::string head(kJudged, '\0');
    const auto got = file ? (*file)->read_at(0, std::as_writable_bytes(std::span(head))) : tl::unexpected(file.error());
    if (!got) {
      skipped.unreadable.push_back(path.string());
      return false;
    }
    judged = judged_.emplace(key, !looks_binary(std::string_view(head).substr(0, *got))).first;
  }
  if (!judged->second) skipped.binary.push_back(path.string());
  return judged->second;
}

void Follower::note_skipped(const Skipped& skipped) {
  if (skipped_noted_) return;
  skipped_noted_ = true;
  std::string text;
  const auto add = [&](const std::vector<std::string>& names, const char* what) {
    if (!names.empty())
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", names.size(), what, listed(names));
  };
  add(skipped.binary, "binary");
  add(skipped.compressed, "compressed");
  add(skipped.unreadable, "unreadable");
  if (!text.empty()) log::info("not followed: {}", text);
}

// ---- Following -----------------------------------------------------------------------------------------------------

Result<void> Follower::open(std::vector<FileMark> marks, MonoTime now) {
  if (settings_.once) {
    for (const Path& path : settings_.paths) {
      if (auto status = files_.status(path); !status) return tl::unexpected(status.error());
    }
  }
  earlier_ = std::move(marks);
  for (const FileMark& mark : earlier_) {
    Lineage& line = lineages_[mark.path];
    if (line.last && line.last_birth > mark.birth) continue;
    line.last = FileKey(mark.device, mark.inode);
    line.last_birth = mark.birth;
  }
  scan(now);
  // What was renamed while nobody looked lies beside its old name. What is nowhere to be found is gone.
  std::vector<FileMark> unmet;
  std::swap(unmet, earlier_);
  for (FileMark& mark : unmet) {
    const Path directory = Path(mark.path).parent_path();
    const auto entries = files_.list(directory.empty() ? Path(".") : directory);
    if (!entries) {
      earlier_.push_back(std::move(mark));  // not readable now: it may come back
      continue;
    }
    for (const auto& entry : *entries) {
      const Path path = directory / entry.name;
      const auto status = entry.type == FileType::kRegular ? files_.status(path) : fail(ErrorKind::kNotFound, "");
      if (!status || status->device != mark.device || status->inode != mark.inode || is_compressed(path)) continue;
      earlier_.push_back(mark);
      if (status->size <= mark.position) break;
      follow({path, *status, true}, now);
      break;
    }
  }
  return {};
}

void Follower::scan(MonoTime now) {
  if (settings_.once && scanned_) return;
  scanned_ = true;
  Skipped skipped;
  const std::vector<Found> found = find(skipped);
  note_skipped(skipped);
  for (const auto& file : open_) {
    file->look(now);
    const auto named = std::find_if(found.begin(), found.end(), [&](const Found& f) { return file->is(f.status); });
    if (named == found.end()) {
      if (!file->rotated) log::debug("{}: rotated away, reading the rest of it", file->path().string());
      file->rotated = true;
    } else {
      file->rotated = false;
      if (named->path != file->path()) file->renamed(named->path);
    }
  }
  for (const Found& candidate : found) {
    const bool is_open =
        std::any_of(open_.begin(), open_.end(), [&](const FilePtr& f) { return f->is(candidate.status); });
    const bool is_read = std::any_of(closed_.begin(), closed_.end(), [&](const Closed& c) {
      return c.mark.device == candidate.status.device && c.mark.inode == candidate.status.inode &&
             c.source->position() == candidate.status.size;
    });
    if (!is_open && !is_read) follow(candidate, now);
  }
  give_up_deleted();
}

FileMark Follower::take_mark(const Found& found, const runtime::File& file) {
  const auto same = [&](const FileMark& m) { return m.device == found.status.device && m.inode == found.status.inode; };
  FileMark mark;
  if (auto closed = std::find_if(closed_.begin(), closed_.end(), [&](const Closed& c) { return same(c.mark); });
      closed != closed_.end()) {
    mark = closed->mark;
    mark.position = closed->source->position();
    closed_.erase(closed);
  } else if (auto earlier = std::find_if(earlier_.begin(), earlier_.end(), same); earlier != earlier_.end()) {
    mark = *earlier;
    earlier_.erase(earlier);
  }
  if (mark.source.empty()) return mark;
  // The number of an inode is given again; the file is the same if it was born then and begins alike.
  const std::int64_t birth = found.status.birth.time_since_epoch().count();
  if (mark.birth != 0 && birth != 0 && mark.birth != birth) return {};
  const auto head = head_hash(file, mark.head_length);
  const bool same_head = mark.head_length == 0 || (head && *head == mark.head_hash);
  if (found.status.size >= mark.position && same_head) return mark;
  ++gone_.truncations;
  log::warn("{}: truncated or rewritten since it was last read, reading it from its start", found.path.string());
  return {};
}

void Follower::follow(const Found& found, MonoTime now) {
  auto file = files_.open(found.path, runtime::OpenMode::kRead);
  if (!file) {
    if (missing_noted_.insert(found.path).second)
      log::warn("{}: cannot be read: {}", found.path.string(), file.error().message);
    return;
  }
  // The name may stand for another file than a moment ago.
  auto status = (*file)->status();
  if (!status || std::any_of(open_.begin(), open_.end(), [&](const FilePtr& f) { return f->is(*status); })) return;
  const FileMark mark = take_mark({found.path, *status}, **file);
  open_.push_back(std::make_unique<FollowedFile>(found.path, std::move(*file), *status, mark, settings_, now));
  open_.back()->rotated = found.rotated;
  missing_noted_.erase(found.path);
}

void Follower::give_up_deleted() {
  if (!settings_.deleted_limit) return;
  while (true) {
    std::uint64_t held = 0;
    std::size_t oldest = open_.size();
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (!open_[i]->deleted()) continue;
      held += open_[i]->unread();
      oldest = std::min(oldest, i);
    }
    if (held <= *settings_.deleted_limit) return;
    gone_.lost_bytes += open_[oldest]->unread();
    log::warn("{}: deleted, and given up with {} bytes unread: deleted files hold more than {} bytes of disk",
              open_[oldest]->path().string(), open_[oldest]->unread(), *settings_.deleted_limit);
    let_go(oldest);
  }
}

void Follower::let_go(std::size_t index) {
  FollowedFile& file = *open_[index];
  gone_.long_lines += file.long_lines();
  if (!file.deleted()) closed_.push_back({file.mark(), file.source()});
  open_.erase(open_.begin() + std::ptrdiff_t(index));
}

// ---- Reading -------------------------------------------------------------------------------------------------------

bool Follower::read(MonoTime now, std::string& buffer, SourceTaker& taker) {
  std::vector<std::size_t> ended;
  bool room = true;
  const std::size_t count = open_.size();
  for (std::size_t i = 0; i < count && room; ++i) {
    const std::size_t index = (turn_ + i) % count;
    FollowedFile& file = *open_[index];
    if (file.next_look > now) continue;
    taker.source(file.source());
    const std::uint64_t before = file.unread();
    const auto outcome = file.read(now, buffer, taker);
    bool over = false;
    if (!outcome) {
      if (missing_noted_.insert(file.path()).second) log::warn("{}", outcome.error().message);
      file.look_period = kLatest;
    } else if (*outcome == FollowedFile::Outcome::kRenewed) {
      ++gone_.truncations;
      gone_.lost_bytes += file.lost_bytes();
      log::warn("{}: truncated or rewritten, reading it from its start{}", file.path().string(),
                file.lost_bytes() > 0 ? fmt::format("; at least {} bytes were gone unread", file.lost_bytes()) : "");
      file.look_period = Duration::zero();
    } else if (*outcome == FollowedFile::Outcome::kMore) {
      file.look_period = Duration::zero();
    } else if (*outcome == FollowedFile::Outcome::kNoRoom) {
      room = false;
      turn_ = index;
      file.look_period = Duration::zero();
    } else {
      const bool grew = file.grown_at() == now || before != file.unread();
      file.look_period = grew ? kSoonest : std::clamp(file.look_period * 2, kSoonest, kLatest);
      over = settings_.once || (file.rotated && now - file.grown_at() >= settings_.close_rotated_after);
    }
    file.next_look = now + file.look_period;
    if (!over) continue;
    const auto finished = file.finish(buffer, taker);
    if (finished && !*finished) {
      room = false;
    } else {
      ended.push_back(index);
    }
  }
  if (room) turn_ = count > 0 ? (turn_ + 1) % count : 0;
  std::sort(ended.rbegin(), ended.rend());
  for (const std::size_t index : ended) let_go(index);
  return room;
}

MonoTime Follower::next_look() const {
  MonoTime next = MonoTime::max();
  for (const auto& file : open_) next = std::min(next, file->next_look);
  return next;
}

std::vector<FileMark> Follower::marks() {
  std::vector<FileMark> marks = earlier_;
  for (const Closed& closed : closed_) {
    marks.push_back(closed.mark);
    marks.back().position = closed.source->position();
  }
  for (const auto& file : open_) marks.push_back(file->mark());
  return marks;
}

Follower::Counts Follower::counts() const {
  Counts counts = gone_;
  counts.files = open_.size();
  for (const auto& file : open_) {
    counts.unread_bytes += file->unread();
    if (file->deleted()) counts.deleted_open_bytes += file->unread();
    counts.long_lines += file->long_lines();
  }
  return counts;
}

}  // namespace weir::agent
