#include "broker/partitions.h"

#include "base/log.h"

namespace weir::broker {

bool Partition::sync_due() const {
  if (removed || syncing || !log->needs_sync()) return false;
  // Page-cache semantics still sync now and then, so that a start after a crash need not scan everything.
  return log->end_offset() - log->durable_offset() >= config.flush_messages ||
         unsynced_bytes >= config.log.checkpoint_bytes || snapshot.has_value();
}

Result<Partition*> Partitions::open(const TopicPartition& name, WallTime now) {
  if (Partition* open = find(name)) return open;
  const Topic* topic = topics_.find(name.topic);
  if (topic == nullptr || !topics_.has(name)) return nullptr;
  const auto config = topic_config(config_, *topic);
  auto log = directory_.open_log(name, config.log, now);
  if (!log) return tl::unexpected(log.error());
  auto partition = std::make_unique<Partition>();
  partition->id = LogId(next_id_++);
  partition->name = name;
  partition->log = std::move(*log);
  partition->config = config;
  Partition* result = partition.get();
  by_name_[name] = result;
  by_id_[result->id] = std::move(partition);
  return result;
}

Partition* Partitions::find(const TopicPartition& name) {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Partition* Partitions::find(LogId id) {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second.get();
}

void Partitions::refresh(std::string_view topic) {
  for (auto& [name, partition] : by_name_) {
    if (!topic.empty() && name.topic != topic) continue;
    partition->config = topic_config(config_, *topics_.find(name.topic));
    partition->log->set_options(partition->config.log);
  }
}

std::vector<storage::DiskWork> Partitions::remove(std::string_view topic, const TopicId& id, std::int32_t partitions) {
  std::vector<storage::DiskWork> works;
  for (std::int32_t i = 0; i < partitions; ++i) {
    const TopicPartition name{std::string(topic), PartitionId(i)};
    if (Partition* partition = find(name)) {
      partition->removed = true;
      by_name_.erase(name);
      if (!partition->syncing) by_id_.erase(partition->id);
    }
    auto work = directory_.remove_log(name, id);
    if (work) {
      works.push_back(std::move(*work));
    } else if (work.error().kind != ErrorKind::kNotFound) {
      log::warn("{}-{}: cannot be removed: {}", topic, i, work.error().message);
    }
  }
  return works;
}

}  // namespace weir::broker
