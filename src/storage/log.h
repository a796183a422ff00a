// One partition on disk in Apache Kafka's layout: segments of record batches with their indexes, append, read, recover,
// retain.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "runtime/file.h"
#include "storage/disk_work.h"
#include "storage/producer_state.h"
#include "weir/types.h"

namespace weir::storage {

class FileCache;
class Segment;

/// A topic's settings as its partitions use them, with Kafka's defaults.
struct LogOptions {
  Bytes segment_bytes = kGiB;                                        ///< log.segment.bytes
  Duration segment_age = std::chrono::hours(168);                    ///< log.roll.ms
  Bytes index_interval = 4 * kKiB;                                   ///< log.index.interval.bytes
  Bytes index_bytes = 10 * kMiB;                                     ///< log.index.size.max.bytes
  std::optional<Duration> retention_time = std::chrono::hours(168);  ///< log.retention.ms; none: for ever
  std::optional<Bytes> retention_bytes;                              ///< log.retention.bytes
  Duration producer_expiry = std::chrono::hours(24);                 ///< producer.id.expiration.ms
  Bytes checkpoint_bytes = 64 * kMiB;  ///< A recovery point is due after this many synced bytes.
};

struct AppendRequest {
  /// One or more whole batches (v2) that have been validated; one that has a producer id comes alone. They are stored
  /// as they are, but for base offset, leader epoch and, with `log_append_ms`, timestamp type, maxTimestamp and CRC.
  ByteView batches;
  std::int32_t leader_epoch = 0;
  /// LogAppendTime: the Unix milliseconds to stamp; none: CreateTime, the batches keep theirs.
  std::optional<std::int64_t> log_append_ms;
};

struct Appended {
  /// Anything but kOk: nothing was written; of a duplicate the offsets are the original's.
  SequenceCheck check = SequenceCheck::kOk;
  Offset base_offset = kNoOffset;
  Offset last_offset = kNoOffset;
  /// The stamp given, the original's for a duplicate; -1 with CreateTime.
  std::int64_t log_append_ms = -1;
};

/// Whole batches, still in their files. The first one may begin before the offset asked for.
struct Slice {
  Payload payload;
  /// Where to go on: the first offset not in the payload.
  Offset next = kNoOffset;
};

struct TimestampHit {
  Offset offset = kNoOffset;
  std::int64_t timestamp = -1;
};

/// What opening a log had to do.
struct RecoveryReport {
  std::size_t segments_scanned = 0;
  std::uint64_t bytes_scanned = 0;
  std::uint64_t bytes_cut = 0;
  std::size_t indexes_rebuilt = 0;
};

/// One fdatasync of a log, prepared by its owner, done by another thread, and reported back.
struct SyncPoint {
  DiskWork work;
  Offset end = kNoOffset;   ///< Durable up to here, exclusive, when the work succeeds.
  bool checkpoint = false;  ///< A recovery point is due once it has.
  std::uint64_t bytes = 0;
};

/// Owned by one loop (the broker's core); every call there. It writes to the page cache and never waits for the disk
/// itself: syncing and unlinking are DiskWork for other threads. Made by LogDirectory.
///
/// Offsets below durable_offset() survive a power cut. After a failed sync the log is read-only, and only that part of
/// it is shown, until the next start. It is read-only too when a part of a batch was written and cannot be taken back.
class Log {
 public:
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// The oldest offset kept; the offset of the next append; the first offset that a power cut may take.
  Offset start_offset() const;
  Offset end_offset() const { return end_; }
  Offset durable_offset() const { return durable_; }
  /// Bytes of batches kept.
  std::uint64_t size() const;
  std::size_t segments() const { return segments_.size(); }
  bool read_only() const { return read_only_; }
  const runtime::Path& directory() const { return directory_; }
  const RecoveryReport& recovery() const { return recovery_; }
  const ProducerState& producers() const { return producers_; }

  /// Checks sequences and appends all or nothing, rolling when due. kNoSpace, kIo: the log is as it was, try later;
  /// kClosed: read-only.
  Result<Appended> append(const AppendRequest& request, WallTime now);

  /// Whole batches from the one that holds `from`, at most `max_bytes` of them, but always the first one when
  /// `whole_first`. Nothing at or above `up_to` (high watermark, last stable offset). Empty when there is nothing yet;
  /// kNotFound when `from` is not between start and end.
  Result<Slice> read(Offset from, Bytes max_bytes, Offset up_to, bool whole_first = true);

  /// The first record with a timestamp at or after `unix_ms`; none when all are older.
  Result<std::optional<TimestampHit>> find_timestamp(std::int64_t unix_ms);
  /// The record with the largest timestamp; none when the log is empty.
  Result<std::optional<TimestampHit>> find_max_timestamp();

  /// True when something is not yet on disk and no sync is under way.
  bool needs_sync() const { return !syncing_ && !sync_failed_ && durable_ < end_; }
  /// True when needs_sync() and a segment was rolled or checkpoint_bytes were written: also without a durability
  /// promise to anyone, the log should be synced now.
  bool checkpoint_wanted() const;
  /// Takes all that is written so far. One at a time: its outcome comes to synced() before the next one.
  SyncPoint prepare_sync();
  void synced(const SyncPoint& point, const Result<void>& outcome);

  /// Clean stop: indexes, producers and all bytes on disk, recovery point at the end. Blocks on the disk.
  Result<void> close(WallTime now);

  /// Where the next start must scan from; every offset below is durable and indexed.
  Offset recovery_point() const { return recovery_point_; }
  /// Why the last sync that should have moved it cannot (a full disk): the next start will take longer.
  const std::optional<Error>& no_checkpoint() const { return no_checkpoint_; }

  /// Takes segments out of the log that time or size have passed; the work unlinks them. Never what is not durable.
  DiskWork retain(WallTime now);
  /// Takes out the whole segments below `offset`.
  DiskWork drop_before(Offset offset);
  /// What is appended next begins a segment, so that drop_before() can take all there is now. kNoSpace, kIo: try later;
  /// kClosed: read-only.
  Result<void> begin_segment();

  void set_options(const LogOptions& options) { options_ = options; }
  const LogOptions& options() const { return options_; }

 private:
  friend class LogDirectory;
  friend class LogRecovery;
  Log(FileCache& cache, runtime::Path directory, const LogOptions& options);

  /// A boundary that was met lately: followers at the tail need no search.
  struct Mark {
    const Segment* segment = nullptr;
    Offset offset = kNoOffset;
    std::uint64_t position = 0;
  };

  bool roll_due(const Segment& active, Bytes bytes, std::int64_t timestamp, Offset last) const;
  void expire_producers(WallTime now);
  Result<void> roll();
  Result<void> write_snapshot();
  Result<void> flush_indexes(Segment& segment);
  void dirty(std::shared_ptr<runtime::File> file);
  std::vector<std::unique_ptr<Segment>>::iterator segment_of(Offset offset);
  Result<std::uint64_t> position_of(Segment& segment, Offset offset);
  void mark(const Segment& segment, Offset offset, std::uint64_t position);
  Result<TimestampHit> record_at(Segment& segment, std::uint64_t position, std::int64_t unix_ms);
  DiskWork drop(std::size_t count);
  /// The directory's name may be another log's from now on: works that are still to be done unlink nothing there.
  void abandon();

  /// Shared with the works that unlink files by their names.
  struct Names {
    std::mutex mutex;
    bool ours = true;
    Result<void> remove(runtime::FileSystem& files, const runtime::Path& path);
    bool still_ours();
  };

  FileCache& cache_;
  const std::shared_ptr<Names> names_ = std::make_shared<Names>();
  const runtime::Path directory_;
  LogOptions options_;
  std::vector<std::unique_ptr<Segment>> segments_;  // by base offset; the last one is written to; never empty once open
  ProducerState producers_;
  Offset end_{0};
  Offset durable_{0};
  Offset recovery_point_{0};
  Offset snapshot_ = kNoOffset;  // the latest one that does not belong to a segment's start
  bool read_only_ = false;       // nothing more is appended
  bool sync_failed_ = false;
  RecoveryReport recovery_;

  // What the next sync must take.
  std::vector<std::shared_ptr<runtime::File>> dirty_;
  bool directory_dirty_ = true;  // names in it; at the start nobody knows whether they were synced
  bool parent_dirty_ = true;
  bool syncing_ = false;
  bool rolled_ = false;
  std::optional<Error> no_checkpoint_;
  Bytes since_checkpoint_ = 0;

  std::array<Mark, 8> marks_;
  std::size_t next_mark_ = 0;
};

}  // namespace weir::storage
