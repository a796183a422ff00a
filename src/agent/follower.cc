#include "agent/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace weir::agent {

namespace {
using runtime::FileStatus;
using runtime::FileType;
using runtime::Path;

constexpr int kDepth = 3;        // levels of directories below an input
constexpr Bytes kJudged = 4096;  // first bytes that tell text from binary
constexpr Duration kSoonest = std::chrono::milliseconds(2);
constexpr Duration kLatest = std::chrono::milliseconds(250);
constexpr Duration kTurn = std::chrono::seconds(1);   // a file with more to read is not closed sooner for another
constexpr Duration kGoneFor = std::chrono::hours(1);  // a disk may be away for a while

bool is_compressed(const Path& path) {
  for (const char* suffix : {".gz", ".xz", ".bz2", ".zst", ".lz4", ".zip", ".Z", ".lzma"}) {
    if (path.extension() == suffix) return true;
  }
  return false;
}

FileKey key_of(const FileStatus& status) { return {status.device, status.inode}; }

/// "app.log.1", "app.log-20260101.log": a name that rotation makes of "app.log", in the same directory.
bool is_rotated_from(const Path& path, const Path& original) {
  const std::string name = path.filename().string();
  const std::string stem = original.filename().string();
  return path.parent_path() == original.parent_path() && name.size() > stem.size() && name.starts_with(stem) &&
         (name[stem.size()] == '.' || name[stem.size()] == '-');
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

std::string not_a_file(const Path& path) {
  return fmt::format("{0} is neither a file nor a directory; to read a pipe, say --input - < {0}", path.string());
}

// ---- Finding -------------------------------------------------------------------------------------------------------

std::vector<Follower::Found> Follower::find(Skipped& skipped) {
  std::vector<Found> found;
  Visited visited;
  seen_ = {};
  own_.clear();
  for (const Path& own : settings_.own_paths) {
    if (const auto status = files_.status(own)) own_.insert(key_of(*status));
  }
  for (const Path& path : settings_.paths) {
    auto status = files_.status(path);
    if (!status || status->type != FileType::kDirectory) find_missed(path, status ? &*status : nullptr, found);
    if (status && status->type == FileType::kRegular) seen_.files.insert(key_of(*status));
    if (status && own_.contains(key_of(*status))) {
      skipped.own.insert(path.string());
    } else if (!status) {
      seen_.input_missing = true;
      if (missing_noted_.insert(path).second) log::info("{}: not there yet, waiting for it", path.string());
    } else if (status->type == FileType::kDirectory) {
      find_in(path, kDepth, visited, found, skipped);
    } else if (status->type == FileType::kRegular) {
      found.push_back({path, *status});
    } else if (missing_noted_.insert(path).second) {
      log::warn("{}", not_a_file(path));
    }
  }
  return found;
}

void Follower::find_in(const Path& directory, int depth, Visited& visited, std::vector<Found>& found,
                       Skipped& skipped) {
  // A directory is known by its inode: links may lead to it again, or into one of our own.
  const auto status = files_.status(directory);
  if (!status) return;
  if (own_.contains(key_of(*status))) {
    skipped.own.insert(directory.string());
    return;
  }
  const auto [seen, first] = visited.emplace(key_of(*status), depth);
  if (!first && seen->second >= depth) return;
  seen->second = depth;
  const auto entries = files_.list(directory);
  if (!entries) {
    skipped.unreadable.insert(directory.string());
    seen_.unlisted.insert(directory);
    return;
  }
  for (const auto& entry : *entries) {
    const Path path = directory / entry.name;
    if (entry.type == FileType::kDirectory && depth > 0) {
      find_in(path, depth - 1, visited, found, skipped);
    } else if (entry.type == FileType::kDirectory) {
      skipped.deep.insert(path.string());
    } else if (entry.type == FileType::kRegular) {
      if (is_compressed(path)) {
        skipped.compressed.insert(path.string());
      } else if (auto status = files_.status(path)) {
        seen_.files.insert(key_of(*status));
        if (own_.contains(key_of(*status))) {
          skipped.own.insert(path.string());
        } else if (status->size > 0 && is_text(path, *status, skipped))
          found.push_back({path, *status});
      }
    }
  }
}

bool Follower::known(const FileStatus& status) const {
  const auto same = [&](const FileMark& m) { return m.device == status.device && m.inode == status.inode; };
  return open_keys_.contains(key_of(status)) || is_read(status) || std::any_of(earlier_.begin(), earlier_.end(), same);
}

/// Read through, let go, and not grown since. A new file on its inode was born at another time.
bool Follower::is_read(const FileStatus& status) const {
  const auto closed = closed_.find(key_of(status));
  return closed != closed_.end() && closed->second.file->birth() == status.birth.time_since_epoch().count() &&
         closed->second.file->read_to() == status.size;
}

void Follower::find_missed(const Path& path, const FileStatus* status, std::vector<Found>& found) {
  Lineage& line = lineages_[path];
  const bool changed = line.last && (!status || *line.last != FileKey(status->device, status->inode));
  if (!status && !changed && owed_.empty()) return;
  const Path directory = path.parent_path().empty() ? Path(".") : path.parent_path();
  const auto entries = files_.list(directory);
  if (!entries) {
    seen_.unlisted.insert(directory);
    return;
  }
  std::set<FileKey> beside;
  for (const auto& entry : *entries) {
    if (entry.type != FileType::kRegular || !is_rotated_from(directory / entry.name, directory / path.filename()) ||
        is_compressed(entry.name))
      continue;
    const auto other = files_.status(directory / entry.name);
    if (!other) continue;
    const FileKey key(other->device, other->inode);
    beside.insert(key);
    seen_.files.insert(key);
    const bool owed = owed_.contains(key);
    if (!owed && (!changed || known(*other) || line.beside.contains(key))) continue;
    // After a restart nobody knows what was there: only what was born after the last one can have had the name.
    const std::int64_t birth = other->birth.time_since_epoch().count();
    if (owed || line.looked || (line.last_birth != 0 && birth > line.last_birth)) {
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
  // The number of an inode is given again, and what was binary may be rewritten. Text stays text, whatever holes it
  // gets.
  const std::int64_t birth = status.birth.time_since_epoch().count();
  Judged& judged = judged_[key_of(status)];
  const bool same_file = judged.birth == 0 || birth == 0 || judged.birth == birth;
  const bool unchanged = judged.size == status.size && judged.modified == status.modified;
  if (!same_file || (!judged.text && !unchanged)) {
    const auto file = files_.open(path, runtime::OpenMode::kRead);
    std::string head(kJudged, '\0');
    const auto got = file ? (*file)->read_at(0, std::as_writable_bytes(std::span(head))) : tl::unexpected(file.error());
    if (!got) {
      skipped.unreadable.insert(path.string());
      judged_.erase(key_of(status));
      return false;
    }
    judged = {!looks_binary(std::string_view(head).substr(0, *got)), birth, status.size, status.modified};
  }
  if (!judged.text) skipped.binary.insert(path.string());
  return judged.text;
}

// One line for all that is new.
void Follower::note_skipped(Skipped skipped) {
  std::string text;
  const auto add = [&](const std::set<std::string>& names, const std::set<std::string>& said, const char* what) {
    std::vector<std::string> fresh;
    std::ranges::set_difference(names, said, std::back_inserter(fresh));
    if (!fresh.empty())
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", fresh.size(), what, listed(fresh));
  };
  add(skipped.binary, skipped_said_.binary, "binary");
  add(skipped.compressed, skipped_said_.compressed, "compressed");
  add(skipped.unreadable, skipped_said_.unreadable, "unreadable");
  add(skipped.own, skipped_said_.own, "of weir's own");
  add(skipped.deep, skipped_said_.deep, "more than three levels below an input");
  if (!text.empty()) log::info("not followed: {}", text);
  skipped_said_ = std::move(skipped);
}

// ---- Following -----------------------------------------------------------------------------------------------------

Result<void> Follower::open(std::vector<FileMark> marks, MonoTime now) {
  if (settings_.once) {
    for (const Path& path : settings_.paths) {
      if (auto status = files_.status(path); !status) return tl::unexpected(status.error());
    }
  }
  for (const Path& path : settings_.paths) {
    if (auto status = files_.status(path); status && status->type == FileType::kOther) {
      return fail(ErrorKind::kInvalid, not_a_file(path));
    }
  }
  earlier_ = std::move(marks);
  for (const FileMark& mark : earlier_) {
    judged_[{mark.device, mark.inode}] = {.text = true, .birth = mark.birth};
    for (const Path& path : settings_.paths) {
      // What had the name may have been renamed before the mark was written.
      if (path != mark.path && !is_rotated_from(mark.path, path)) continue;
      Lineage& line = lineages_[path];
      if (line.last && line.last_birth > mark.birth) continue;
      line.last = FileKey(mark.device, mark.inode);
      line.last_birth = mark.birth;
    }
  }
  scan(now);
  if (settings_.once) {
    for (const Path& path : settings_.paths) {
      auto status = files_.status(path);
      if (!status || status->type != FileType::kRegular || open_keys_.contains(key_of(*status))) continue;
      if (auto file = files_.open(path, runtime::OpenMode::kRead); !file) return tl::unexpected(file.error());
    }
  }
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
      if (auto done = follow({path, *status, true}, now); !done) {
        say_unreadable(path, done.error().message, now);
      } else if (!*done) {
        owed_.insert(key_of(*status));
      }
      break;
    }
  }
  return {};
}

void Follower::scan(MonoTime now) {
  if (settings_.once && scanned_ && waiting_ == 0) return;
  scanned_ = true;
  Skipped skipped;
  const std::vector<Found> found = find(skipped);
  note_skipped(std::move(skipped));
  // A file that was found under several names is followed under the first.
  std::map<FileKey, const Found*> by_key;
  for (const Found& candidate : found) by_key.emplace(key_of(candidate.status), &candidate);
  for (const auto& file : open_) {
    file->look(now);
    const auto named = by_key.find(file->key());
    if (named == by_key.end()) {
      if (!file->rotated) log::debug("{}: rotated away, reading the rest of it", file->path().string());
      file->rotated = true;
    } else {
      file->rotated = false;
      if (named->second->path != file->path()) file->renamed(named->second->path);
    }
  }
  std::vector<const Found*> unread;
  for (const auto& [key, candidate] : by_key) {
    const auto closed = closed_.find(key);
    if (closed != closed_.end()) closed->second.file->grew_to(candidate->status.size, now);
    // With `once`, what is closed has been read to where its end was.
    if (open_keys_.contains(key) || is_read(candidate->status) || (settings_.once && closed != closed_.end())) continue;
    unread.push_back(candidate);
  }
  follow_in_turn(std::move(unread), now);
  give_up_deleted(now);
  forget_gone(now);
}

/// First those that were never open, then those that have waited longest.
void Follower::follow_in_turn(std::vector<const Found*> unread, MonoTime now) {
  const auto closed_at = [&](const Found* found) {
    const auto closed = closed_.find(key_of(found->status));
    return closed == closed_.end() ? MonoTime::min() : closed->second.file->closed_at;
  };
  std::map<const Found*, MonoTime> since;
  for (const Found* found : unread) since.emplace(found, closed_at(found));
  std::sort(unread.begin(), unread.end(),
            [&](const Found* a, const Found* b) { return std::tie(since[a], a->path) < std::tie(since[b], b->path); });
  waiting_ = 0;
  waiting_bytes_ = 0;
  owed_.clear();
  for (const Found* found : unread) {
    if (waiting_ == 0) {
      const auto done = follow(*found, now);
      if (!done) say_unreadable(found->path, done.error().message, now);
      if (!done || *done) continue;
    }
    ++waiting_;
    if (since[found] == MonoTime::min()) waiting_bytes_ += found->status.size;
    if (found->rotated) owed_.insert(key_of(found->status));
  }
  if (waiting_ > 0 && !std::exchange(crowd_noted_, true)) {
    log::warn("{} files are open, half of what `ulimit -n` allows, and {} more wait: they are read in turn",
              open_.size(), waiting_);
  }
}

/// Closes the one that can best wait: read to its end, else the one that has been open longest. False: none can. What
/// is deleted, or has no name of ours any more, could not be opened again.
bool Follower::make_room(MonoTime now) {
  if (open_.size() < settings_.most_files) return true;
  if (settings_.once) return false;  // each is closed when it has been read
  const auto may_wait = [](const FilePtr& file) { return file->had_turn && !file->deleted() && !file->rotated; };
  auto first = std::ranges::find_if(open_, [&](const FilePtr& file) { return may_wait(file) && file->at_end(); });
  if (first == open_.end()) {
    first = std::ranges::find_if(open_,
                                 [&](const FilePtr& file) { return may_wait(file) && now - file->opened_at >= kTurn; });
  }
  if (first == open_.end()) return false;
  let_go(std::size_t(first - open_.begin()), now);
  return true;
}

/// Rotation makes new files for ever; what is known of those that are gone must not grow with them.
void Follower::forget_gone(MonoTime now) {
  std::erase_if(judged_, [&](const auto& judged) { return !seen_.files.contains(judged.first); });
  if (seen_.input_missing) return;
  for (auto next = closed_.begin(); next != closed_.end();) {
    const auto at = next++;
    Closed& closed = at->second;
    const Path directory = closed.file->path().parent_path();
    if (seen_.files.contains(at->first) || seen_.unlisted.contains(directory.empty() ? Path(".") : directory)) {
      closed.gone_since.reset();
      continue;
    }
    if (!closed.gone_since) closed.gone_since = now;
    if (now - *closed.gone_since < kGoneFor || closed.file->source()->outstanding() > 0) continue;
    forget(*closed.file, now);
    closed_.erase(at);
  }
}

void Follower::forget(const FollowedFile& file, MonoTime now) {
  gone_.long_lines += file.long_lines();
  if (file.unread() == 0) return;
  gone_.lost_bytes["given_up"] += file.unread();
  if (!gone_log_.allow(now)) return;
  const std::size_t more = gone_log_.suppressed();
  log::warn("{}: deleted while it waited for its turn, with {} bytes unread{}", file.path().string(), file.unread(),
            more > 0 ? fmt::format(" (and so {} more files)", more) : "");
}

/// The file as it was when it was closed; none when it never was, or another one has its inode now.
std::unique_ptr<FollowedFile> Follower::take_closed(const FileStatus& status, MonoTime now) {
  const auto closed = closed_.extract(key_of(status));
  if (closed.empty()) return nullptr;
  FilePtr file = std::move(closed.mapped().file);
  if (file->birth() == status.birth.time_since_epoch().count()) return file;
  forget(*file, now);
  return nullptr;
}

FileMark Follower::take_mark(const Found& found, const runtime::File& file) {
  const auto same = [&](const FileMark& m) { return m.device == found.status.device && m.inode == found.status.inode; };
  FileMark mark;
  if (auto earlier = std::find_if(earlier_.begin(), earlier_.end(), same); earlier != earlier_.end()) {
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

Result<bool> Follower::follow(const Found& found, MonoTime now) {
  auto file = files_.open(found.path, runtime::OpenMode::kRead);
  if (!file) return tl::unexpected(file.error());
  // The name may stand for another file than a moment ago.
  auto status = (*file)->status();
  if (!status) return tl::unexpected(status.error());
  if (status->type != FileType::kRegular) return fail(ErrorKind::kInvalid, not_a_file(found.path));
  if (open_keys_.contains(key_of(*status))) return true;
  if (!make_room(now)) return false;
  FilePtr next = take_closed(*status, now);
  if (next) {
    next->reopen(found.path, std::move(*file));
  } else {
    const FileMark mark = take_mark({found.path, *status}, **file);
    next = std::make_unique<FollowedFile>(found.path, std::move(*file), *status, mark, settings_, now);
  }
  next->rotated = found.rotated;
  next->had_turn = false;
  next->opened_at = now;
  open_keys_.insert(next->key());
  open_.push_back(std::move(next));
  missing_noted_.erase(found.path);
  return true;
}

/// Once for each file; thousands at a time (out of descriptors) are one line a second.
void Follower::say_unreadable(const Path& path, std::string_view why, MonoTime now) {
  if (!missing_noted_.insert(path).second || !unreadable_log_.allow(now)) return;
  const std::size_t more = unreadable_log_.suppressed();
  log::warn("{}; not read until it can be{}", why, more > 0 ? fmt::format(" (and {} more files)", more) : "");
}

void Follower::give_up_deleted(MonoTime now) {
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
    gone_.lost_bytes["given_up"] += open_[oldest]->unread();
    log::warn("{}: deleted, and given up with {} bytes unread: deleted files hold more than {} bytes of disk",
              open_[oldest]->path().string(), open_[oldest]->unread(), *settings_.deleted_limit);
    let_go(oldest, now);
  }
}

void Follower::let_go(std::size_t index, MonoTime now) {
  FilePtr file = std::move(open_[index]);
  open_.erase(open_.begin() + std::ptrdiff_t(index));
  open_keys_.erase(file->key());
  if (file->deleted()) {
    gone_.long_lines += file->long_lines();
    return;
  }
  file->close();
  file->closed_at = now;
  const FileKey key = file->key();
  closed_.insert_or_assign(key, Closed{std::move(file), std::nullopt});
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
    file.had_turn = true;
    if (!taker.source(file.source())) {
      file.look_period = kLatest;
      file.next_look = now + kLatest;
      continue;
    }
    const std::uint64_t before = file.unread();
    const auto outcome = file.read(now, buffer, taker);
    bool over = false;
    if (!outcome) {
      say_unreadable(file.path(), outcome.error().message, now);
      file.look_period = kLatest;
    } else if (*outcome == FollowedFile::Outcome::kRenewed) {
      ++gone_.truncations;
      if (file.lost_bytes() > 0) gone_.lost_bytes["truncated"] += file.lost_bytes();
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
    if (file.long_lines() > 0 && !std::exchange(file.long_line_said, true) && long_line_log_.allow(now)) {
      const std::size_t more = long_line_log_.suppressed();
      log::warn("{}{}", long_line_notice(file.path().string(), file.long_line_at(), settings_),
                more > 0 ? fmt::format(" (and so in {} more files)", more) : "");
    }
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
  for (const std::size_t index : ended) let_go(index, now);
  return room;
}

MonoTime Follower::next_look() const {
  MonoTime next = MonoTime::max();
  for (const auto& file : open_) next = std::min(next, file->next_look);
  return next;
}

std::vector<FileMark> Follower::marks() {
  std::vector<FileMark> marks = earlier_;
  for (const auto& [key, closed] : closed_) marks.push_back(closed.file->mark());
  for (const auto& file : open_) marks.push_back(file->mark());
  return marks;
}

Follower::Counts Follower::counts() const {
  Counts counts = gone_;
  counts.files = open_.size();
  counts.unread_bytes = waiting_bytes_;
  for (const auto& [key, closed] : closed_) {
    counts.unread_bytes += closed.file->unread();
    counts.long_lines += closed.file->long_lines();
  }
  for (const auto& file : open_) {
    counts.unread_bytes += file->unread();
    if (file->deleted()) counts.deleted_open_bytes += file->unread();
    counts.long_lines += file->long_lines();
  }
  return counts;
}

}  // namespace weir::agent
