#include "storage/segment.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/log.h"
#include "storage/batch_cursor.h"

namespace weir::storage {

using runtime::File;
using runtime::OpenMode;

std::string file_name(Offset base, std::string_view extension) {
  return fmt::format("{:020}.{}", base.value, extension);
}

Segment::Segment(FileCache& cache, const runtime::Path& directory, Offset base, Bytes index_interval)
    : cache_(cache),
      directory_(directory),
      base_(base),
      index_interval_(index_interval),
      keys_(cache.new_keys(3)),
      end_(base) {}

Segment::~Segment() {
  for (std::uint64_t i = 0; i < 3; ++i) cache_.forget(keys_ + i);
}

bool Segment::index_full(Bytes index_bytes) const {
  return (offsets_.size() + 1) * SparseIndex::entry_size(IndexKind::kOffset) > index_bytes ||
         (times_.size() + 2) * SparseIndex::entry_size(IndexKind::kTime) > index_bytes;
}

// ---- Becoming known

Result<void> Segment::create() {
  // What a crash left under this name was never counted.
  for (const char* extension : {"index", "timeindex"}) {
    if (auto removed = cache_.files().remove(path(extension)); !removed) return removed;
  }
  indexes_known_ = largest_known_ = true;
  const auto file = cache_.open(keys_, path("log"), OpenMode::kCreateEmpty);
  if (!file) return tl::unexpected(file.error());
  return {};
}

Result<void> Segment::trust(Offset end) {
  const auto status = cache_.files().status(path("log"));
  if (!status) return tl::unexpected(status.error());
  size_ = status->size;
  end_ = end;
  return {};
}

Result<Segment::Recovered> Segment::recover(Offset trusted_below) {
  Recovered result;
  const auto status = cache_.files().status(path("log"));
  if (!status) return tl::unexpected(status.error());
  size_ = status->size;
  Boundary start{0, base_};
  if (size_ > 0) {
    const auto trusted = trusted_start(trusted_below);
    if (!trusted) return tl::unexpected(trusted.error());
    if (*trusted)
      start = **trusted;
    else
      result.reindexed = trusted_below > base_ && size_ > index_interval_;
  }
  if (start.position == 0) {
    offsets_.clear();
    times_.clear();
    largest_ = {};
  }
  indexes_known_ = largest_known_ = true;
  if (size_ == 0) return result;

  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  BatchCursor cursor(**file, start.position, size_);
  end_ = start.offset;
  std::uint64_t good = start.position;
  since_index_ = 0;  // a first batch that is not at the start has its index entry already
  while (const auto batch = cursor.next()) {
    if (batch->base_offset < end_) break;
    if (batch->last_offset() >= trusted_below && !cursor.crc_holds()) break;
    note(*batch, cursor.position());
    good = cursor.next_position();
  }
  if (cursor.error()) return tl::unexpected(*cursor.error());
  result.scanned = size_ - start.position;
  result.cut = size_ - good;
  if (result.cut > 0) {
    if (auto cut = (*file)->truncate(good); !cut) return tl::unexpected(cut.error());
    size_ = good;
  }
  return result;
}

/// The last indexed batch below `trusted_below`, when index and log agree about it; both indexes then end there.
Result<std::optional<Segment::Boundary>> Segment::trusted_start(Offset trusted_below) {
  if (trusted_below <= base_ || !load(offsets_, IndexKind::kOffset) || !load(times_, IndexKind::kTime))
    return std::nullopt;
  const auto offset_file = stored(offsets_, IndexKind::kOffset);
  const auto time_file = stored(times_, IndexKind::kTime);
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  if (!offset_file || !time_file) return std::nullopt;
  const auto count = offsets_.count_keys(offset_file->get(), trusted_below - base_ - 1);
  if (!count || *count == 0) return std::nullopt;
  const auto entry = offsets_.at(offset_file->get(), *count - 1);
  if (!entry || entry->value <= 0 || static_cast<std::uint64_t>(entry->value) >= size_) return std::nullopt;
  BatchCursor cursor(**file, static_cast<std::uint64_t>(entry->value), size_);
  const auto batch = cursor.next();
  if (!batch || batch->last_offset() != base_ + entry->key) return std::nullopt;

  const auto times = times_.count_values(time_file->get(), entry->key);
  if (!times || *times == 0) return std::nullopt;
  const auto time = times_.at(time_file->get(), *times - 1);
  if (!time || time->value < 0 || time->value > entry->key) return std::nullopt;
  if (!offsets_.keep(**offset_file, *count) || !times_.keep(**time_file, *times)) return std::nullopt;
  indexes_known_ = true;
  end_ = batch->base_offset;  // seeks below it are allowed
  if (base_ + time->value < end_) {
    const auto holds = time_entry_holds(*time);
    if (!holds) return tl::unexpected(holds.error());
    if (!*holds) return std::nullopt;
  }
  largest_ = {time->key, base_ + time->value};
  return Boundary{static_cast<std::uint64_t>(entry->value), batch->base_offset};
}

// ---- Writing

Result<std::shared_ptr<File>> Segment::append(std::span<const ByteView> pieces) {
  auto file = log_file();
  if (!file) return file;
  if (auto written = (*file)->write_at(size_, pieces); !written) {
    if (auto cut = (*file)->truncate(size_); !cut) return fail(ErrorKind::kClosed, cut.error().message);
    return tl::unexpected(written.error());
  }
  return file;
}

void Segment::appended(const wire::BatchHeader& batch) {
  const std::uint64_t position = size_;
  size_ += batch.size();
  note(batch, position);
}

/// Takes a batch into account, as Kafka's LogSegment.append does.
void Segment::note(const wire::BatchHeader& batch, std::uint64_t position) {
  if (position == 0) first_timestamp_ = batch.max_timestamp;
  if (batch.max_timestamp > largest_.timestamp) largest_ = {batch.max_timestamp, batch.last_offset()};
  if (since_index_ > index_interval_) {
    offsets_.append({batch.last_offset() - base_, static_cast<std::int32_t>(position)});
    if (!times_.last() || largest_.timestamp > times_.last()->key)
      times_.append({largest_.timestamp, static_cast<std::int32_t>(largest_.offset - base_)});
    since_index_ = 0;
  }
  since_index_ += batch.size();
  end_ = batch.next_offset();
}

void Segment::seal() {
  if (!largest_known_ || size_ == 0) return;
  if (!times_.last() || largest_.timestamp > times_.last()->key)
    times_.append({largest_.timestamp, static_cast<std::int32_t>(largest_.offset - base_)});
}

Result<std::vector<std::shared_ptr<File>>> Segment::flush_indexes() {
  std::vector<std::shared_ptr<File>> written;
  for (const auto kind : {IndexKind::kOffset, IndexKind::kTime}) {
    SparseIndex& index = kind == IndexKind::kOffset ? offsets_ : times_;
    if (!indexes_known_ || !index.dirty()) continue;
    auto file = index_file(kind, OpenMode::kCreate);
    if (!file) return tl::unexpected(file.error());
    if (auto flushed = index.flush(**file); !flushed) return tl::unexpected(flushed.error());
    written.push_back(std::move(*file));
  }
  return written;
}

// ---- Indexes

Result<std::shared_ptr<File>> Segment::log_file() {
  if (auto file = cache_.find(keys_)) return file;  // without making its name
  return cache_.open(keys_, path("log"));
}

Result<std::shared_ptr<File>> Segment::index_file(IndexKind kind, OpenMode mode) {
  if (auto file = cache_.find(key(kind))) return file;
  return cache_.open(key(kind), path(kind == IndexKind::kOffset ? "index" : "timeindex"), mode);
}

Result<void> Segment::load(SparseIndex& index, IndexKind kind) {
  return index_file(kind, OpenMode::kWrite).and_then([&](const auto& file) { return index.load(*file); });
}

/// The file of an index, or null when nothing is stored in it.
Result<std::shared_ptr<File>> Segment::stored(const SparseIndex& index, IndexKind kind) {
  if (!index.needs_file()) return nullptr;
  return index_file(kind, OpenMode::kWrite);
}

Result<void> Segment::load_indexes() {
  if (indexes_known_) return {};
  if (load(offsets_, IndexKind::kOffset) && load(times_, IndexKind::kTime)) {
    indexes_known_ = true;
    return {};
  }
  return reindex();
}

/// Builds both indexes anew from the batches.
Result<void> Segment::reindex() {
  log::warn("{}: rebuilding a missing or damaged index", path("log").string());
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  offsets_.clear();
  times_.clear();
  largest_ = {};
  since_index_ = 0;
  const Offset end = end_;
  BatchCursor cursor(**file, 0, size_);
  while (const auto batch = cursor.next()) note(*batch, cursor.position());
  if (cursor.error()) return tl::unexpected(*cursor.error());
  end_ = end;
  indexes_known_ = largest_known_ = true;
  seal();
  return {};
}

// ---- Reading

/// Where the index says that a batch begins which is not after the one that holds `offset`; nothing when the index is
/// wrong.
Result<std::optional<std::uint64_t>> Segment::indexed_position(Offset offset) {
  if (auto known = load_indexes(); !known) return tl::unexpected(known.error());
  const auto index = stored(offsets_, IndexKind::kOffset);
  if (!index) return std::nullopt;
  const auto count = offsets_.count_keys(index->get(), offset - base_);
  if (!count) return std::nullopt;
  if (*count == 0) return std::uint64_t{0};
  const auto entry = offsets_.at(index->get(), *count - 1);
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  if (!entry || entry->value < 0 || static_cast<std::uint64_t>(entry->value) >= size_) return std::nullopt;
  const auto position = static_cast<std::uint64_t>(entry->value);
  const auto batch = BatchCursor(**file, position, size_).next();
  if (!batch || batch->last_offset() != base_ + entry->key) return std::nullopt;
  return position;
}

Result<std::uint64_t> Segment::walk_to(std::uint64_t from, Offset offset) {
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  BatchCursor cursor(**file, from, size_);
  while (const auto batch = cursor.next()) {
    if (batch->last_offset() >= offset) return cursor.position();
  }
  if (cursor.error()) return tl::unexpected(*cursor.error());
  return size_;
}

Result<std::uint64_t> Segment::seek(Offset offset) {
  if (offset <= base_) return std::uint64_t{0};
  auto start = indexed_position(offset);
  if (start && !*start) {
    if (auto built = reindex(); !built) return tl::unexpected(built.error());
    start = indexed_position(offset);
  }
  if (!start) return tl::unexpected(start.error());
  return walk_to(start->value_or(0), offset);
}

Result<Segment::Boundary> Segment::last_boundary(Boundary from, std::uint64_t limit, Offset up_to) {
  if (limit >= size_ && up_to >= end_) return Boundary{size_, end_};
  Boundary at = from;
  // Jump near the limit by the index, as far as that lies after `from`.
  if (auto known = load_indexes(); !known) return tl::unexpected(known.error());
  if (const auto index = stored(offsets_, IndexKind::kOffset)) {
    const auto below = offsets_.count_keys(index->get(), up_to - base_ - 1);
    const auto within =
        offsets_.count_values(index->get(), static_cast<std::int64_t>(std::min<std::uint64_t>(limit, INT32_MAX)));
    if (below && within && std::min(*below, *within) > 0) {
      const auto entry = offsets_.at(index->get(), std::min(*below, *within) - 1);
      if (entry && entry->value > 0 && static_cast<std::uint64_t>(entry->value) > from.position) {
        // Only when the log agrees; else the walk starts at `from`, which is slower and as right.
        const auto jump = indexed_position(base_ + entry->key);
        if (jump && *jump && **jump == static_cast<std::uint64_t>(entry->value)) at = {**jump, kNoOffset};
      }
    }
  }
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  BatchCursor cursor(**file, at.position, size_);
  while (const auto batch = cursor.next()) {
    if (at.offset == kNoOffset) at.offset = batch->base_offset;
    if (cursor.next_position() > limit || batch->last_offset() >= up_to) break;
    at = {cursor.next_position(), batch->next_offset()};
  }
  if (cursor.error()) return tl::unexpected(*cursor.error());
  return at;
}

Result<std::optional<std::int64_t>> Segment::first_timestamp() {
  if (first_timestamp_ || size_ == 0) return first_timestamp_;
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  BatchCursor cursor(**file, 0, size_);
  if (const auto batch = cursor.next()) first_timestamp_ = batch->max_timestamp;
  if (cursor.error()) return tl::unexpected(*cursor.error());
  return first_timestamp_;
}

/// True when the batch that a time-index entry names ends at its offset and has its timestamp.
Result<bool> Segment::time_entry_holds(const IndexEntry& entry) {
  const Offset offset = base_ + entry.value;
  if (entry.value < 0 || offset >= end_) return false;
  const auto near = indexed_position(offset);
  if (!near) return tl::unexpected(near.error());
  if (!*near) return false;
  const auto position = walk_to(**near, offset);
  if (!position) return tl::unexpected(position.error());
  const auto file = log_file();
  if (!file) return tl::unexpected(file.error());
  const auto batch = BatchCursor(**file, *position, size_).next();
  return batch && batch->last_offset() == offset && batch->max_timestamp == entry.key;
}

Result<Segment::Largest> Segment::largest_timestamp() {
  if (largest_known_ || size_ == 0) return largest_;
  if (auto known = load_indexes(); !known) return tl::unexpected(known.error());
  if (largest_known_) return largest_;  // the indexes had to be built
  bool holds = false;
  if (times_.last()) {
    const IndexEntry entry = *times_.last();
    auto checked = time_entry_holds(entry);
    if (!checked) return tl::unexpected(checked.error());
    holds = *checked;
    if (holds) largest_ = {entry.key, base_ + entry.value};
  }
  if (!holds) {
    if (auto built = reindex(); !built) return tl::unexpected(built.error());
  }
  largest_known_ = true;
  return largest_;
}

Result<std::uint64_t> Segment::seek_timestamp(std::int64_t unix_ms) {
  if (auto known = load_indexes(); !known) return tl::unexpected(known.error());
  for (const bool last_try : {false, true}) {
    const auto index = stored(times_, IndexKind::kTime);
    if (!index) return tl::unexpected(index.error());
    const auto count = times_.count_keys(index->get(), unix_ms);
    if (count && *count == 0) return std::uint64_t{0};
    if (const auto entry = times_.at(index->get(), count.value_or(1) - 1)) {
      const auto holds = time_entry_holds(*entry);
      if (!holds) return tl::unexpected(holds.error());
      if (*holds) return seek(base_ + entry->value);
    }
    if (last_try) break;
    if (auto built = reindex(); !built) return tl::unexpected(built.error());
  }
  return std::uint64_t{0};
}

}  // namespace weir::storage
