#include "storage/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "storage/batch_cursor.h"
#include "storage/file_cache.h"
#include "storage/segment.h"

namespace weir::storage {
namespace {

constexpr Bytes kMaxPlainBatch = 64 * kMiB;  // what a compressed batch may become when a timestamp is looked for in it
constexpr Bytes kMaxSegment = INT32_MAX;     // index entries have 31 bits for the position
constexpr Bytes kPatched = 16;               // base offset to leader epoch: the part of a header that we set

using Headers = std::vector<wire::BatchHeader>;

Result<Headers> headers_of(ByteView batches) {
  Headers headers;
  for (ByteView rest = batches; !rest.empty(); rest = rest.subspan(headers.back().size())) {
    const auto header = wire::read_batch_header(rest);
    if (!header) return fail(ErrorKind::kInvalid, header.error().message);
    if (header->size() > rest.size()) return fail(ErrorKind::kInvalid, "the last batch is cut short");
    headers.push_back(*header);
  }
  if (headers.empty()) return fail(ErrorKind::kInvalid, "no batch to append");
  const auto has_producer = [](const wire::BatchHeader& h) { return h.has_producer(); };
  if (headers.size() > 1 && std::any_of(headers.begin(), headers.end(), has_producer))
    return fail(ErrorKind::kInvalid, "a batch with a producer id must come alone");
  return headers;
}

std::int64_t in_ms(Duration d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); }

std::int64_t largest_timestamp(const Headers& headers) {
  std::int64_t largest = -1;
  for (const auto& header : headers) largest = std::max(largest, header.max_timestamp);
  return largest;
}

}  // namespace

Log::Log(FileCache& cache, runtime::Path directory, const LogOptions& options)
    : cache_(cache), directory_(std::move(directory)), options_(options) {}
Log::~Log() = default;

Offset Log::start_offset() const { return segments_.front()->base(); }

std::uint64_t Log::size() const {
  std::uint64_t size = 0;
  for (const auto& segment : segments_) size += segment->size();
  return size;
}

// ---- Appending

Result<Appended> Log::append(const AppendRequest& request, WallTime now) {
  if (read_only_)
    return fail(
        ErrorKind::kClosed,
        fmt::format("{} is read-only after a failed write or sync: check the disk and restart", directory_.string()));
  auto headers = headers_of(request.batches);
  if (!headers) return tl::unexpected(headers.error());

  const auto verdict = producers_.check(headers->front());
  if (verdict.check == SequenceCheck::kDuplicate)
    return Appended{verdict.check, verdict.base_offset, verdict.last_offset,
                    request.log_append_ms ? verdict.timestamp : -1};
  if (verdict.check != SequenceCheck::kOk) return Appended{.check = verdict.check};

  ByteBuffer stamped;
  ByteView batches = request.batches;
  if (request.log_append_ms) {
    stamped = to_buffer(batches);
    batches = stamped;
  }
  // All but the first bytes of each header is written from where it lies.
  std::vector<std::array<std::byte, kPatched>> patches(headers->size());
  std::vector<ByteView> pieces;
  Offset next = end_;
  for (std::size_t i = 0, at = 0; i < headers->size(); ++i) {
    wire::BatchHeader& header = (*headers)[i];
    if (request.log_append_ms) {
      wire::set_log_append_time(std::span(stamped).subspan(at, header.size()), *request.log_append_ms);
      header.max_timestamp = *request.log_append_ms;
    }
    const ByteView batch = batches.subspan(at, header.size());
    std::copy_n(batch.begin(), kPatched, patches[i].begin());
    wire::set_base_offset(patches[i], next);
    wire::set_leader_epoch(patches[i], request.leader_epoch);
    pieces.push_back(patches[i]);
    pieces.push_back(batch.subspan(kPatched));
    header.base_offset = next;
    next = header.next_offset();
    at += header.size();
  }

  const std::int64_t largest = largest_timestamp(*headers);
  const std::int64_t timestamp = largest < 0 ? to_unix_ms(now) : largest;
  if (roll_due(*segments_.back(), batches.size(), timestamp, next - 1)) {
    if (auto rolled = roll(); !rolled) return tl::unexpected(rolled.error());
  }
  Segment& active = *segments_.back();
  auto file = active.append(pieces);
  if (!file) {
    read_only_ |= file.error().kind == ErrorKind::kClosed;
    return tl::unexpected(file.error());
  }
  for (const auto& header : *headers) {
    active.appended(header);
    producers_.update(header);
  }
  dirty(std::move(*file));
  since_checkpoint_ += batches.size();
  return Appended{SequenceCheck::kOk, std::exchange(end_, next), next - 1, request.log_append_ms.value_or(-1)};
}

bool Log::roll_due(const Segment& active, Bytes bytes, std::int64_t timestamp, Offset last) const {
  if (active.size() == 0) return false;
  if (active.size() + bytes > std::min(options_.segment_bytes, kMaxSegment)) return true;
  if (last - active.base() > INT32_MAX || active.index_full(options_.index_bytes)) return true;
  const auto first = const_cast<Segment&>(active).first_timestamp();
  return first && *first && **first >= 0 && timestamp - **first > in_ms(options_.segment_age);
}

/// Ends the active segment and begins the next one.
Result<void> Log::roll() {
  segments_.back()->seal();
  if (auto flushed = flush_indexes(*segments_.back()); !flushed) return flushed;
  if (auto written = write_snapshot(); !written) return written;
  auto segment = std::make_unique<Segment>(cache_, directory_, end_, options_.index_interval);
  if (auto made = segment->create(); !made) return made;
  segments_.push_back(std::move(segment));
  if (snapshot_ == end_) snapshot_ = kNoOffset;  // it now belongs to the segment
  directory_dirty_ = true;
  rolled_ = true;
  return {};
}

Result<void> Log::begin_segment() {
  if (read_only_) return fail(ErrorKind::kClosed, fmt::format("{} is read-only", directory_.string()));
  return segments_.back()->size() == 0 ? Result<void>() : roll();
}

Result<void> Log::flush_indexes(Segment& segment) {
  auto files = segment.flush_indexes();
  if (!files) return tl::unexpected(files.error());
  for (auto& file : *files) dirty(std::move(file));
  return {};
}

/// The producers as they are at the end of the log. Not renamed into place: its checksum tells a torn one.
Result<void> Log::write_snapshot() {
  auto file = cache_.files().open(directory_ / file_name(end_, "snapshot"), runtime::OpenMode::kCreateEmpty);
  if (!file) return tl::unexpected(file.error());
  if (auto written = (*file)->write_at(0, producers_.encode()); !written) return written;
  dirty(std::move(*file));
  directory_dirty_ = true;
  return {};
}

void Log::dirty(std::shared_ptr<runtime::File> file) {
  if (std::find(dirty_.begin(), dirty_.end(), file) == dirty_.end()) dirty_.push_back(std::move(file));
}

// ---- Syncing

bool Log::checkpoint_wanted() const {
  return needs_sync() && (rolled_ || since_checkpoint_ >= options_.checkpoint_bytes);
}

SyncPoint Log::prepare_sync() {
  WEIR_ASSERT(!syncing_);
  syncing_ = true;
  SyncPoint point;
  point.end = end_;
  std::optional<runtime::Path> old_snapshot;
  if (rolled_ || since_checkpoint_ >= options_.checkpoint_bytes) {
    Segment& active = *segments_.back();
    const bool at_start = end_ == active.base();  // the roll has written it
    auto prepared = flush_indexes(active).and_then([&] { return at_start ? Result<void>() : write_snapshot(); });
    no_checkpoint_ = prepared ? std::nullopt : std::optional(prepared.error());
    if (prepared) {
      point.checkpoint = true;
      rolled_ = false;
      since_checkpoint_ = 0;
      const Offset before = std::exchange(snapshot_, at_start ? kNoOffset : end_);
      if (before != kNoOffset && before != snapshot_) old_snapshot = directory_ / file_name(before, "snapshot");
    }
  }
  mark(*segments_.back(), end_, segments_.back()->size());
  const bool own = std::exchange(directory_dirty_, false);
  const bool parent = std::exchange(parent_dirty_, false);
  point.work = [&files = cache_.files(), names = names_, dirty = std::exchange(dirty_, {}), own, parent,
                directory = directory_, old_snapshot]() -> Result<void> {
    for (const auto& file : dirty) {
      if (auto synced = file->sync(); !synced) return synced;
    }
    if (own) {
      // One that is gone because its partition was removed is nobody's any more.
      if (auto synced = files.sync_directory(directory); !synced && names->still_ours()) return synced;
    }
    if (parent) {
      if (auto synced = files.sync_directory(directory.parent_path()); !synced) return synced;
    }
    // One that stays is harmless: the start takes the latest.
    if (old_snapshot) (void)names->remove(files, *old_snapshot);
    return {};
  };
  return point;
}

void Log::synced(const SyncPoint& point, const Result<void>& outcome) {
  WEIR_ASSERT(syncing_);
  syncing_ = false;
  if (!outcome) {
    // What the kernel could not write it has forgotten: only what was durable before can be shown.
    log::error("{}: {}; the partition is read-only up to offset {} until a restart", directory_.string(),
               outcome.error().message, durable_.value);
    read_only_ = sync_failed_ = true;
    end_ = durable_;
    return;
  }
  durable_ = point.end;
  if (point.checkpoint) recovery_point_ = point.end;
}

Result<void> Log::close(WallTime now) {
  WEIR_ASSERT(!syncing_);
  expire_producers(now);
  if (sync_failed_ || recovery_point_ == end_) return {};
  segments_.back()->seal();
  rolled_ = true;  // asks for a checkpoint
  const SyncPoint point = prepare_sync();
  const Result<void> outcome = point.work();
  synced(point, outcome);
  return outcome;
}

// ---- Reading

std::vector<std::unique_ptr<Segment>>::iterator Log::segment_of(Offset offset) {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                      [](Offset o, const auto& segment) { return o < segment->base(); });
  return after - 1;
}

Result<std::uint64_t> Log::position_of(Segment& segment, Offset offset) {
  for (const Mark& m : marks_) {
    if (m.segment == &segment && m.offset == offset) return m.position;
  }
  return segment.seek(offset);
}

void Log::mark(const Segment& segment, Offset offset, std::uint64_t position) {
  marks_[next_mark_++ % marks_.size()] = {&segment, offset, position};
}

Result<Slice> Log::read(Offset from, Bytes max_bytes, Offset up_to, bool whole_first) {
  if (from < start_offset() || from > end_)
    return fail(ErrorKind::kNotFound, fmt::format("{}: offset {} is not between {} and {}", directory_.string(),
                                                  from.value, start_offset().value, end_.value));
  Slice slice;
  slice.next = from;
  up_to = std::min(up_to, end_);
  Bytes left = max_bytes;
  for (auto it = segment_of(from); it != segments_.end() && slice.next < up_to; ++it) {
    Segment& segment = **it;
    if (slice.next >= segment.end()) continue;
    const auto position = position_of(segment, slice.next);
    if (!position) return tl::unexpected(position.error());
    if (*position >= segment.size()) {  // a hole: segments between this one and the next are gone
      slice.next = segment.end();
      continue;
    }
    auto file = segment.log_file();
    if (!file) return tl::unexpected(file.error());
    auto stop =
        segment.last_boundary({*position, slice.next}, *position + std::min<std::uint64_t>(left, kMaxSegment), up_to);
    if (!stop) return tl::unexpected(stop.error());
    if (stop->position == *position) {  // not even one batch fits
      if (!slice.payload.empty() || !whole_first) break;
      BatchCursor cursor(**file, *position, segment.size());
      const auto first = cursor.next();
      if (!first)
        return fail(ErrorKind::kIo, fmt::format("{}: damaged at byte {}", segment.path("log").string(), *position));
      if (first->last_offset() >= up_to) break;
      stop = Segment::Boundary{cursor.next_position(), first->next_offset()};
    }
    const Bytes length = stop->position - *position;
    slice.payload.append(FileRange{std::move(*file), *position, length});
    slice.next = stop->offset;
    left -= std::min(left, length);
    if (stop->position < segment.size()) {
      mark(segment, stop->offset, stop->position);
      break;
    }
    if (it + 1 == segments_.end()) mark(segment, stop->offset, stop->position);
  }
  return slice;
}

Result<TimestampHit> Log::record_at(Segment& segment, std::uint64_t position, std::int64_t unix_ms) {
  auto file = segment.log_file();
  if (!file) return tl::unexpected(file.error());
  const auto header = BatchCursor(**file, position, segment.size()).next();
  if (!header)
    return fail(ErrorKind::kIo, fmt::format("{}: damaged at byte {}", segment.path("log").string(), position));
  ByteBuffer bytes(header->size());
  if (auto n = (*file)->read_at(position, bytes); !n) return tl::unexpected(n.error());
  if (auto records = wire::RecordReader::open(bytes, kMaxPlainBatch)) {
    while (const auto record = records->next()) {
      if (record->timestamp >= unix_ms) return TimestampHit{record->offset, record->timestamp};
    }
  }
  return TimestampHit{header->base_offset, header->max_timestamp};  // its records cannot be read, the header can
}

Result<std::optional<TimestampHit>> Log::find_timestamp(std::int64_t unix_ms) {
  for (const auto& segment : segments_) {
    const auto largest = segment->largest_timestamp();
    if (!largest) return tl::unexpected(largest.error());
    if (largest->offset == kNoOffset || largest->timestamp < unix_ms) continue;
    const auto start = segment->seek_timestamp(unix_ms);
    if (!start) return tl::unexpected(start.error());
    const auto file = segment->log_file();
    if (!file) return tl::unexpected(file.error());
    BatchCursor cursor(**file, *start, segment->size());
    while (const auto batch = cursor.next()) {
      if (batch->max_timestamp < unix_ms) continue;
      auto hit = record_at(*segment, cursor.position(), unix_ms);
      if (!hit) return tl::unexpected(hit.error());
      if (hit->offset >= end_) return std::nullopt;
      return *hit;
    }
    if (cursor.error()) return tl::unexpected(*cursor.error());
  }
  return std::nullopt;
}

Result<std::optional<TimestampHit>> Log::find_max_timestamp() {
  Segment* with = nullptr;
  Segment::Largest largest;
  for (const auto& segment : segments_) {
    const auto own = segment->largest_timestamp();
    if (!own) return tl::unexpected(own.error());
    if (own->offset == kNoOffset || own->timestamp <= largest.timestamp) continue;
    largest = *own;
    with = segment.get();
  }
  if (with == nullptr) return std::nullopt;
  const auto position = with->seek(largest.offset);
  if (!position) return tl::unexpected(position.error());
  auto hit = record_at(*with, *position, largest.timestamp);
  if (!hit) return tl::unexpected(hit.error());
  if (hit->offset >= end_) return std::nullopt;
  return *hit;
}

// ---- Retention

void Log::expire_producers(WallTime now) { producers_.expire(to_unix_ms(now) - in_ms(options_.producer_expiry)); }

DiskWork Log::retain(WallTime now) {
  const std::int64_t now_ms = to_unix_ms(now);
  expire_producers(now);
  std::size_t by_time = 0;
  if (options_.retention_time) {
    for (const auto& segment : segments_) {
      const auto largest = segment->largest_timestamp();
      if (!largest || segment->size() == 0) break;
      std::int64_t newest = largest->timestamp;
      if (largest->offset == kNoOffset) {  // no record has a timestamp
        const auto file = segment->log_file();
        const auto status = file ? (*file)->status() : tl::unexpected(file.error());
        if (!status) break;
        newest = to_unix_ms(status->modified);
      }
      if (now_ms - newest <= in_ms(*options_.retention_time)) break;
      ++by_time;
    }
  }
  std::size_t by_size = 0;
  if (options_.retention_bytes && size() > *options_.retention_bytes) {
    std::uint64_t excess = size() - *options_.retention_bytes;
    for (const auto& segment : segments_) {
      if (segment->size() == 0 || segment->size() > excess) break;
      excess -= segment->size();
      ++by_size;
    }
  }
  return drop(std::max(by_time, by_size));
}

DiskWork Log::drop_before(Offset offset) {
  std::size_t count = 0;
  while (count < segments_.size() && segments_[count]->end() <= offset && segments_[count]->size() > 0) ++count;
  return drop(count);
}

Result<void> Log::Names::remove(runtime::FileSystem& files, const runtime::Path& path) {
  std::lock_guard lock(mutex);
  return ours ? files.remove(path) : Result<void>();
}

bool Log::Names::still_ours() {
  std::lock_guard lock(mutex);
  return ours;
}

void Log::abandon() {
  std::lock_guard lock(names_->mutex);
  names_->ours = false;
}

/// Takes out the first `count` segments, as far as they are durable.
DiskWork Log::drop(std::size_t count) {
  if (read_only_) return {};
  while (count > 0 && segments_[count - 1]->end() > durable_) --count;
  if (count == 0) return {};
  if (count == segments_.size()) {
    if (auto rolled = roll(); !rolled) {
      log::warn("{}", rolled.error().message);
      return {};
    }
  }
  std::vector<runtime::Path> gone;  // without extension, oldest first
  for (std::size_t i = 0; i < count; ++i) gone.push_back(segments_[i]->path("log").replace_extension());
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(count));
  marks_ = {};
  recovery_point_ = std::max(recovery_point_, start_offset());
  // The segment that carries on must be on disk, by name and with what it knows about producers, before the others go.
  // These go one by one: a crash that brought back an older one only would leave a hole as lost batches leave it.
  return [&files = cache_.files(), names = names_, gone = std::move(gone), sync = directory_dirty_ || syncing_,
          directory = directory_, snapshot = segments_.front()->path("snapshot")]() -> Result<void> {
    if (auto file = files.open(snapshot, runtime::OpenMode::kWrite)) {
      if (auto synced = (*file)->sync(); !synced) return synced;
    } else if (file.error().kind != ErrorKind::kNotFound) {
      return tl::unexpected(file.error());
    }
    if (sync) {
      if (auto synced = files.sync_directory(directory); !synced) return synced;
    }
    for (const auto& name : gone) {
      for (const char* extension : {".log", ".index", ".timeindex", ".snapshot"}) {
        if (auto removed = names->remove(files, name.string() + extension); !removed) return removed;
      }
      if (auto synced = files.sync_directory(directory); !synced) return synced;
    }
    return {};
  };
}

}  // namespace weir::storage
