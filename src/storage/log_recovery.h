// Opens a partition's directory as a crash, or an orderly stop, has left it.
#pragma once

#include <memory>
#include <vector>

#include "storage/log.h"

namespace weir::storage {

/// Start-up only; blocks on the disk. Never refuses for bytes that are no whole valid batch: the log ends before them.
class LogRecovery {
 public:
  /// `recovery_point`: below it the log is durable and is not looked at.
  static Result<std::shared_ptr<Log>> open(FileCache& cache, const runtime::Path& directory, const LogOptions& options,
                                           Offset recovery_point, WallTime now);

 private:
  explicit LogRecovery(Log& log);
  Result<void> run(Offset recovery_point, WallTime now);
  Result<void> sort_names();
  Result<void> open_segments(Offset recovery_point);
  Result<void> sync_names();
  Result<void> remove_segments_from(std::size_t first);
  Result<void> remove_later_snapshots();
  Result<void> load_producers();
  Result<void> replay_producers(Offset from);
  Result<void> save_producers();

  Log& log_;
  runtime::FileSystem& files_;
  bool names_changed_ = false;  // a removed file must not come back after a crash
  std::vector<Offset> bases_;
  std::vector<Offset> snapshots_;
};

}  // namespace weir::storage
