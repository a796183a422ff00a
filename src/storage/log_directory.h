// The data directory: its lock, its partitions, and the recovery points they start from.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/log.h"
#include "wire/uuid.h"

namespace weir::storage {

/// Owned by the loop that owns the logs. Outlives them.
class LogDirectory {
 public:
  /// Makes the directory when missing, locks it (kExists names the process that holds it), reads the recovery points
  /// and finds the partitions. `max_open_files`: segment files kept open. Blocks on the disk.
  static Result<std::unique_ptr<LogDirectory>> open(runtime::FileSystem& files, runtime::Path path,
                                                    std::size_t max_open_files = 512);
  ~LogDirectory();

  /// The partitions that have a directory here, sorted.
  const std::vector<TopicPartition>& found() const { return found_; }

  /// For the start, before open_log(): what an earlier run took out of its name and did not unlink is removed, but
  /// given back to its topic when that is still there, whose deletion then did not last. `name_of`: of the topic with
  /// that id, empty when there is none. Blocks on the disk.
  Result<void> settle_removals(const std::function<std::string(const wire::Uuid&)>& name_of);

  /// Opens a partition that was found, recovering it from its recovery point, or makes a new one (whose directory the
  /// first sync of the log makes durable). One call per partition.
  Result<std::shared_ptr<Log>> open_log(const TopicPartition& partition, const LogOptions& options, WallTime now);
  /// Forgets a partition and frees its name at once; the work unlinks its files, and is for when the end of its topic
  /// is durable. `topic`: the id of that, by which settle_removals() may give it back; nothing when it must go in any
  /// case. Its log must no longer be used for appends.
  Result<DiskWork> remove_log(const TopicPartition& partition, const std::optional<wire::Uuid>& topic);
  /// Forgets a partition and frees its name, but keeps the files under the name that is returned.
  Result<runtime::Path> set_aside(const TopicPartition& partition);

  /// True when some log's recovery point has moved since the last checkpoint().
  bool checkpoint_due() const;
  /// The work writes `recovery-point-offset-checkpoint`, or removes it when it cannot be written and names a partition
  /// that is gone. Works of one directory run one after the other.
  DiskWork checkpoint();
  /// Clean stop: flushes indexes and producer states, syncs everything and checkpoints, so that the next start scans
  /// nothing. Blocks on the disk; no log is used afterwards.
  Result<void> close(WallTime now);

  const runtime::Path& path() const { return path_; }
  runtime::FileSystem& files() { return files_; }

 private:
  LogDirectory(runtime::FileSystem& files, runtime::Path path, std::size_t max_open_files);
  runtime::FileSystem& files_;
  runtime::Path path_;
  std::unique_ptr<runtime::FileLock> lock_;
  std::unique_ptr<FileCache> cache_;
  std::vector<TopicPartition> found_;
  std::map<TopicPartition, std::shared_ptr<Log>> logs_;
  std::map<TopicPartition, Offset> saved_;  // recovery points as last written
  bool saved_removed_ = false;              // the file names a partition that is gone, whose name may be given again
  std::vector<std::string> half_removed_;   // names of directories, until settle_removals()
  std::map<TopicPartition, wire::Uuid> unremoved_;  // deleted, but their directory could not be renamed
};

/// "topic-3" and back; none when the name is not a partition's.
std::string directory_name(const TopicPartition& partition);
std::optional<TopicPartition> parse_directory_name(std::string_view name);

}  // namespace weir::storage
