// The partitions in use: their logs, the settings in force, and who waits for what they show next.
//
// Owned by the core loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "broker/effects.h"
#include "broker/topic_config.h"
#include "broker/topics.h"
#include "storage/log_directory.h"
#include "weir/types.h"

namespace weir::broker {

/// Everything alive in a log, appended in one go to offsets [from, to).
struct Snapshot {
  Offset from, to;
};

struct Partition {
  LogId id;
  TopicPartition name;
  std::shared_ptr<storage::Log> log;
  TopicConfig config;
  std::optional<storage::SyncPoint> syncing;  ///< The fdatasync a log loop is at.
  std::uint64_t unsynced_bytes = 0;           ///< Appended since the last sync was prepared.
  std::set<RequestId> fetches;                ///< Long polls to look at again when more can be shown.
  /// Of `__consumer_offsets` (core_offsets.cc): when its size is worth a look, and the snapshot that is not durable
  /// yet.
  std::uint64_t shrink_above = 0;
  std::optional<Snapshot> snapshot;
  bool removed = false;  ///< Its topic is deleted; lives on only until its sync is back.

  /// Consumers see what lies below: the durable offset, or the end under page-cache semantics.
  Offset high_watermark() const {
    return config.durable_acks() || log->read_only() ? log->durable_offset() : log->end_offset();
  }
  /// Nothing is replicated and no transactions are served, so nothing holds readers back from the high watermark.
  Offset last_stable_offset() const { return high_watermark(); }
  bool sync_due() const;
};

class Partitions {
 public:
  /// All must outlive this.
  Partitions(storage::LogDirectory& directory, const BrokerConfig& config, const Topics& topics)
      : directory_(directory), config_(config), topics_(topics) {}

  /// The partition, opened on first use. Null when the topic has no such partition; kIo and so on when its log cannot
  /// be opened.
  Result<Partition*> open(const TopicPartition& name, WallTime now);
  /// The same, only if it is open already.
  Partition* find(const TopicPartition& name);
  Partition* find(LogId id);

  /// Settings of the topic changed. Empty: of the broker.
  void refresh(std::string_view topic);
  /// Takes the topic's partitions out, open or not; the work unlinks their files.
  std::vector<storage::DiskWork> remove(std::string_view topic, const TopicId& id, std::int32_t partitions);
  /// Lets go of a removed partition whose sync is back.
  void forget(LogId id) { by_id_.erase(id); }

  template <typename Visit>
  void each(Visit visit) {
    for (auto& [name, partition] : by_name_) visit(*partition);
  }
  std::size_t size() const { return by_name_.size(); }

 private:
  storage::LogDirectory& directory_;
  const BrokerConfig& config_;
  const Topics& topics_;
  std::map<TopicPartition, Partition*> by_name_;
  std::unordered_map<LogId, std::unique_ptr<Partition>> by_id_;
  std::uint32_t next_id_ = kFirstPartitionLog;
};

}  // namespace weir::broker
