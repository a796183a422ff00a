#include "storage/log_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "storage/batch_cursor.h"
#include "storage/file_cache.h"
#include "storage/segment.h"

namespace weir::storage {
namespace {

constexpr std::size_t kOffsetDigits = 20;
constexpr Bytes kMaxSnapshot = 256 * kMiB;

/// "00000000000000000042.index" in its parts; none for other names.
std::optional<std::pair<Offset, std::string>> parse_file_name(std::string_view name) {
  if (name.size() <= kOffsetDigits || name[kOffsetDigits] != '.') return std::nullopt;
  Offset base;
  const std::string digits(name.substr(0, kOffsetDigits));
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, base.value);
  if (error != std::errc() || end != last || base.value < 0) return std::nullopt;
  return std::pair(base, std::string(name.substr(kOffsetDigits + 1)));
}

}  // namespace

LogRecovery::LogRecovery(Log& log) : log_(log), files_(log.cache_.files()) {}

Result<std::shared_ptr<Log>> LogRecovery::open(FileCache& cache, const runtime::Path& directory,
                                               const LogOptions& options, Offset recovery_point, WallTime now) {
  std::shared_ptr<Log> log(new Log(cache, directory, options));
  LogRecovery recovery(*log);
  if (auto done = recovery.run(recovery_point, now); !done) return tl::unexpected(done.error());
  return log;
}

Result<void> LogRecovery::run(Offset recovery_point, WallTime now) {
  if (auto made = files_.make_directory(log_.directory_); !made) return made;
  if (auto sorted = sort_names(); !sorted) return sorted;
  if (auto opened = open_segments(recovery_point); !opened) return opened;
  if (recovery_point > log_.segments_.back()->end()) {
    log::warn(
        "{}: ends at offset {}, {} was durable once: the files were cut, are from an older copy or another topic's",
        log_.directory_.string(), log_.segments_.back()->end().value, recovery_point.value);
    log_.segments_.clear();
    recovery_point = Offset(0);
    if (auto opened = open_segments(recovery_point); !opened) return opened;
  }
  log_.end_ = log_.segments_.back()->end();
  if (auto removed = remove_later_snapshots(); !removed) return removed;
  if (log_.end_ > recovery_point || names_changed_) {
    if (auto synced = sync_names(); !synced) return synced;
  }
  log_.recovery_point_ = std::clamp(recovery_point, log_.start_offset(), log_.end_);
  log_.durable_ = log_.end_;
  if (auto loaded = load_producers(); !loaded) return loaded;
  log_.expire_producers(now);
  return {};
}

/// Finds segments and snapshots, and removes what belongs to neither.
Result<void> LogRecovery::sort_names() {
  const auto entries = files_.list(log_.directory_);
  if (!entries) return tl::unexpected(entries.error());
  std::set<Offset> bases;
  for (const auto& entry : *entries) {
    const auto parts = parse_file_name(entry.name);
    if (parts && parts->second == "log") bases.insert(parts->first);
  }
  bases_.assign(bases.begin(), bases.end());
  for (const auto& entry : *entries) {
    const auto parts = parse_file_name(entry.name);
    if (!parts) continue;
    const auto& [base, extension] = *parts;
    const bool orphan =
        (extension == "index" || extension == "timeindex" || extension == "txnindex") && !bases.contains(base);
    const bool unfinished =
        extension.ends_with(".deleted") || extension.ends_with(".cleaned") || extension.ends_with(".swap");
    if (extension == "snapshot") snapshots_.push_back(base);
    if (orphan || unfinished) {
      if (auto removed = files_.remove(log_.directory_ / entry.name); !removed) return removed;
    }
  }
  std::sort(snapshots_.begin(), snapshots_.end());
  return {};
}

Result<void> LogRecovery::open_segments(Offset recovery_point) {
  auto& segments = log_.segments_;
  const auto add = [&](Offset base) -> Segment& {
    return *segments.emplace_back(
        std::make_unique<Segment>(log_.cache_, log_.directory_, base, log_.options_.index_interval));
  };
  if (bases_.empty()) {
    return add(Offset(0)).create();
  }
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    if (i > 0 && segments.back()->end() > bases_[i]) {
      log::error("{}: the segment at {} begins inside the one before it; it is dropped", log_.directory_.string(),
                 bases_[i].value);
      return remove_segments_from(i);
    }
    Segment& segment = add(bases_[i]);
    const bool last = i + 1 == bases_.size();
    if (!last && bases_[i + 1] <= recovery_point) {
      if (auto trusted = segment.trust(bases_[i + 1]); !trusted) return trusted;
      continue;
    }
    const auto found = segment.recover(recovery_point);
    if (!found) return tl::unexpected(found.error());
    log_.recovery_.segments_scanned += 1;
    log_.recovery_.bytes_scanned += found->scanned;
    log_.recovery_.bytes_cut += found->cut;
    log_.recovery_.indexes_rebuilt += found->reindexed ? 1 : 0;
    if (segment.end() > recovery_point || found->cut > 0) {
      // A process that was killed leaves bytes that the disk may not have yet.
      auto file = segment.log_file();
      if (!file) return tl::unexpected(file.error());
      if (auto synced = (*file)->sync(); !synced) return synced;
    }
    if (found->cut > 0) {
      log::warn("{}: {} bytes after offset {} were no whole batch and are cut off", segment.path("log").string(),
                found->cut, segment.end().value);
      if (!last) return remove_segments_from(i + 1);
    }
    if (!last && segment.end() < bases_[i + 1]) {
      log::warn("{}: offsets {} to {} were not on the disk yet and are lost", log_.directory_.string(),
                segment.end().value, bases_[i + 1].value - 1);
      return remove_segments_from(i + 1);
    }
    if (last) break;
    segment.seal();
    if (auto flushed = log_.flush_indexes(segment); !flushed) log::warn("{}", flushed.error().message);
  }
  return {};
}

/// The names of files whose bytes now count.
Result<void> LogRecovery::sync_names() {
  for (const auto& directory : {log_.directory_, log_.directory_.parent_path()}) {
    if (auto synced = files_.sync_directory(directory); !synced) return synced;
  }
  log_.directory_dirty_ = log_.parent_dirty_ = false;
  return {};
}

/// What follows lost bytes cannot be told apart from what never was.
Result<void> LogRecovery::remove_segments_from(std::size_t first) {
  names_changed_ = true;
  for (std::size_t i = first; i < bases_.size(); ++i) {
    log::warn("{}: dropping the segment at {}, which follows what was lost", log_.directory_.string(), bases_[i].value);
    for (const char* extension : {"log", "index", "timeindex"}) {
      if (auto removed = files_.remove(log_.directory_ / file_name(bases_[i], extension)); !removed) return removed;
    }
  }
  bases_.resize(first);
  return {};
}

/// Snapshots past the end tell of batches that were lost. One that comes back after the next crash would be taken for
/// the state of the batches that have their offsets by then.
Result<void> LogRecovery::remove_later_snapshots() {
  for (; !snapshots_.empty() && snapshots_.back() > log_.end_; snapshots_.pop_back()) {
    names_changed_ = true;
    if (auto removed = files_.remove(log_.directory_ / file_name(snapshots_.back(), "snapshot")); !removed)
      return removed;
  }
  return {};
}

Result<void> LogRecovery::load_producers() {
  Offset from = log_.start_offset();
  bool loaded = false;
  for (auto it = snapshots_.rbegin(); it != snapshots_.rend(); ++it) {
    const runtime::Path path = log_.directory_ / file_name(*it, "snapshot");
    const bool segment_start =
        std::any_of(log_.segments_.begin(), log_.segments_.end(), [&](const auto& s) { return s->base() == *it; });
    bool keep = !loaded || segment_start;
    if (keep && !loaded) {
      const auto bytes = files_.read_all(path, kMaxSnapshot);
      if (!bytes && bytes.error().kind == ErrorKind::kIo) return tl::unexpected(bytes.error());
      auto state = bytes ? ProducerState::decode(*bytes) : tl::unexpected(bytes.error());
      keep = loaded = state.has_value();
      if (loaded) {
        log_.producers_ = std::move(*state);
        from = std::max(from, *it);
        if (!segment_start) log_.snapshot_ = *it;
      }
    }
    if (keep) continue;
    if (auto removed = files_.remove(path); !removed) return removed;
  }
  if (auto replayed = replay_producers(from); !replayed) return replayed;
  return from < log_.segments_.back()->base() ? save_producers() : Result<void>();
}

/// What older segments told about producers, before retention may take them away.
Result<void> LogRecovery::save_producers() {
  if (auto written = log_.write_snapshot(); !written) return written;
  log_.snapshot_ = log_.end_ == log_.segments_.back()->base() ? kNoOffset : log_.end_;
  for (const auto& file : std::exchange(log_.dirty_, {})) {
    if (auto synced = file->sync(); !synced) return synced;
  }
  return sync_names();
}

Result<void> LogRecovery::replay_producers(Offset from) {
  for (const auto& segment : log_.segments_) {
    if (segment->end() <= from || segment->size() == 0) continue;
    const auto start = segment->seek(std::max(from, segment->base()));
    if (!start) return tl::unexpected(start.error());
    const auto file = segment->log_file();
    if (!file) return tl::unexpected(file.error());
    BatchCursor cursor(**file, *start, segment->size());
    while (const auto batch = cursor.next()) log_.producers_.update(*batch);
    if (cursor.error()) return tl::unexpected(*cursor.error());
  }
  return {};
}

}  // namespace weir::storage
