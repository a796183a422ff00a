// Loading the data directory, retention, and the clean stop.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "broker/core.h"
#include "broker/core_state.h"
#include "broker/group/coordinator.h"
#include "broker/quota.h"
#include "wire/record_batch.h"

namespace weir::broker {
namespace {
constexpr std::string_view kMetadataFile = "weir-metadata.log";
constexpr Bytes kLoadChunk = kMiB;
constexpr Bytes kMaxPlainBatch = 256 * kMiB;
}  // namespace

Result<std::unique_ptr<Core>> Core::open(runtime::FileSystem& files, BrokerConfig config, Now now) {
  if (config.log_dir.empty()) return fail(ErrorKind::kInvalid, "no data directory: name one with --data or log.dirs");
  std::unique_ptr<Core> core(new Core(files, std::move(config), now));
  auto directory = storage::LogDirectory::open(files, core->config_.log_dir);
  if (!directory) return tl::unexpected(directory.error());
  core->directory_ = std::move(*directory);
  if (auto done = core->load_metadata(); !done) return tl::unexpected(done.error());
  core->partitions_ = std::make_unique<Partitions>(*core->directory_, core->config_, core->topics_);
  core->groups_ = std::make_unique<GroupCoordinator>(*core);
  if (auto done = core->open_partitions(); !done) return tl::unexpected(done.error());
  if (auto done = core->load_groups(); !done) return tl::unexpected(done.error());
  core->groups_->loaded(now);
  core->partitions_->each([&](Partition& partition) {
    if (partition.name.topic == kOffsetsTopic) core->shrink(partition);
  });
  core->next_retention_ = now.mono + core->retention_period();
  return core;
}

Result<void> Core::load_metadata() {
  const runtime::Path path = runtime::Path(config_.log_dir) / kMetadataFile;
  auto log = storage::RecordLog::open(files_, path, [&](ByteView payload) -> Result<void> {
    auto records = decode_metadata_records(payload);
    if (!records) return tl::unexpected(records.error());
    for (const MetadataRecord& record : *records) replay(record);
    return {};
  });
  if (!log) return tl::unexpected(log.error());
  metadata_ = std::make_unique<MetadataState>(std::move(*log));
  metadata_->appended = metadata_->durable = static_cast<std::int64_t>(metadata_->log.records());
  // A killed process leaves records that the disk may not have yet, and from here on they are built upon.
  if (auto done = metadata_->log.prepare_sync()(); !done) return done;
  if (!cluster_id_.empty()) return rewrite_metadata();
  if (!directory_->found().empty()) {
    return fail(
        ErrorKind::kInvalid,
        fmt::format("{}: there are partitions but no {}: not a data directory of weir's, or that file was lost; name "
                    "another directory",
                    config_.log_dir, kMetadataFile));
  }
  const ClusterRecord cluster{wire::to_string(wire::random_uuid())};
  if (auto done = metadata_->log.append_durably(encode({cluster})); !done) return done;
  metadata_->appended = metadata_->durable = 1;
  replay(cluster);
  return {};
}

/// Throws away what later records have replaced, when that is most of a long log.
Result<void> Core::rewrite_metadata() {
  constexpr std::size_t kLong = 1000;
  if (metadata_->log.records() < kLong) return {};
  std::vector<ByteBuffer> entries{encode({ClusterRecord{cluster_id_}})};
  for (const auto& [name, topic] : topics_.all()) {
    std::vector<MetadataRecord> records{TopicRecord{name, topic.id, topic.partitions}};
    for (const auto& [key, value] : topic.configs) records.push_back(ConfigRecord{kTopicResource, name, key, value});
    entries.push_back(encode(records));
  }
  for (const auto& [key, value] : config_.dynamic())
    entries.push_back(encode({ConfigRecord{kBrokerResource, "", key, value}}));
  for (const auto& [entity, values] : quotas_->all()) {
    for (const auto& [key, value] : values) entries.push_back(encode({QuotaRecord{entity, key, value}}));
  }
  entries.push_back(encode({ProducerIdsRecord{producer_ids_.reserved()}}));
  if (entries.size() * 2 > metadata_->log.records()) return {};
  // Files of deleted topics must be gone before nothing remembers the topics.
  for (const auto& name : directory_->found()) {
    if (deleted_topics_.contains(name.topic)) return {};
  }
  if (auto done = metadata_->log.rewrite(entries); !done) return done;
  metadata_->appended = metadata_->durable = static_cast<std::int64_t>(entries.size());
  return {};
}

Result<void> Core::open_partitions() {
  const auto name_of = [this](const TopicId& id) {
    const Topic* topic = topics_.find(id);
    return topic == nullptr ? std::string() : topic->name;
  };
  if (auto done = directory_->settle_removals(name_of); !done) return done;
  checkpoint_due_ = true;
  std::set<std::string> strays;
  const std::vector<TopicPartition> found = directory_->found();
  for (const TopicPartition& name : found) {
    if (!topics_.has(name) && deleted_topics_.contains(name.topic)) {
      // The topic's end was durable, the removal of its files was not.
      auto work = directory_->remove_log(name, std::nullopt);
      if (auto done = work ? (*work)() : Result<void>(tl::unexpected(work.error())); !done) {
        log::warn("{}-{}: cannot be removed: {}", name.topic, name.partition.value, done.error().message);
      }
      continue;
    }
    if (!topics_.has(name)) {
      strays.insert(name.topic);
      metadata_->strays.insert(name);
      continue;
    }
    if (auto opened = partitions_->open(name, now_.wall); !opened) return tl::unexpected(opened.error());
  }
  deleted_topics_.clear();
  for (const auto& topic : strays) {
    log::warn("{}: holds partitions of '{}', which is not a topic here; they are left alone until one is made",
              config_.log_dir, topic);
  }
  return {};
}

Result<void> Core::load_groups() {
  std::vector<Partition*> found;
  partitions_->each([&](Partition& partition) {
    if (partition.name.topic == kOffsetsTopic) found.push_back(&partition);
  });
  for (Partition* partition : found) {
    if (auto done = load_group_partition(*partition); !done) return done;
  }
  return {};
}

Result<void> Core::load_group_partition(Partition& partition) {
  storage::Log& log = *partition.log;
  for (Offset at = log.start_offset(); at < log.end_offset();) {
    auto slice = log.read(at, kLoadChunk, log.end_offset());
    if (!slice) return tl::unexpected(slice.error());
    if (slice->payload.empty()) break;
    auto bytes = slice->payload.flatten();
    if (!bytes) return tl::unexpected(bytes.error());
    const auto damaged = [&](Offset offset, const std::string& why) {
      log::error("{}-{}: offset {}: {}: what groups committed there is lost; the files are kept as they are",
                 kOffsetsTopic, partition.name.partition.value, offset.value, why);
      partition.shrink_above = UINT64_MAX;
    };
    Offset next = at;
    for (ByteView rest(*bytes); !rest.empty();) {
      const auto header = wire::read_batch_header(rest);
      if (!header || header->size() > rest.size()) {
        damaged(next, header ? "a batch that is cut off" : header.error().message);
        break;
      }
      next = header->next_offset();
      auto reader = wire::RecordReader::open(rest.first(header->size()), kMaxPlainBatch);
      if (!reader) {
        return fail(ErrorKind::kInvalid,
                    fmt::format("{}-{}: offset {}: {}", kOffsetsTopic, partition.name.partition.value,
                                header->base_offset.value, reader.error().message));
      }
      while (auto record = reader->next()) {
        if (record->key)
          groups_->replay(partition.name.partition, *record->key, record->value, from_unix_ms(record->timestamp));
      }
      if (auto done = reader->result(); !done) damaged(header->base_offset, done.error().message);
      rest = rest.subspan(header->size());
    }
    if (slice->next <= at) break;
    at = slice->next;
  }
  return {};
}

Duration Core::retention_period() const {
  constexpr std::int64_t kDayMs = 24LL * 3600 * 1000;
  return std::chrono::milliseconds(std::min(config_.log_retention_check_interval_ms, kDayMs));
}

void Core::retain() {
  next_retention_ = now_.mono + retention_period();
  complaints_.finish();
  partitions_->each([&](Partition& partition) {
    if (auto work = partition.log->retain(now_.wall)) effects_.push_back(Chore{std::move(work)});
  });
}

Result<void> Core::close(Now now) {
  begin(now);
  complaints_.finish();
  Result<void> metadata;
  if (metadata_->appended > metadata_->durable && !metadata_->failed) metadata = metadata_->log.prepare_sync()();
  const Result<void> closed = directory_->close(now.wall);
  return metadata ? closed : metadata;
}

}  // namespace weir::broker
