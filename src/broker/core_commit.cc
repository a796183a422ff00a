// Decisions, fsync, and the answers that wait for it.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "broker/core.h"
#include "broker/core_state.h"
#include "broker/group/coordinator.h"
#include "broker/quota.h"
#include "wire/record_batch.h"

namespace weir::broker {

using protocol::ErrorCode;

// ---- Decisions
// -----------------------------------------------------------------------------------------------------------

template <typename Decision>
void Core::refuse(const Decision& decision, ErrorCode error) {
  for (const Answer& answer : decision.answers) {
    const Request* request = open(answer.request);
    if (request != nullptr) reply(answer.request, answer.refuse(*request, error));
  }
}

/// Directories of partitions of that name that no topic owns, such as a power cut leaves that took back the topic's
/// creation: a new topic must not begin with their records.
Result<void> Core::set_aside_strays(std::string_view topic) {
  for (auto stray = metadata_->strays.begin(); stray != metadata_->strays.end();) {
    if (stray->topic != topic) {
      ++stray;
      continue;
    }
    const auto moved = directory_->set_aside(*stray);
    if (!moved) return tl::unexpected(moved.error());
    log::warn(
        "{}: held records of no topic; set aside as {} for the topic made under that name: remove it when you do "
        "not need them",
        (directory_->path() / storage::directory_name(*stray)).string(), moved->filename().string());
    removals_unsynced_ = checkpoint_due_ = true;
    stray = metadata_->strays.erase(stray);
  }
  return {};
}

bool Core::commit(MetadataDecision decision) {
  // After a failed fsync also what is only read may be what a crash takes back.
  bool appended = !metadata_->failed || (decision.records.empty() && metadata_->appended == metadata_->durable);
  for (const MetadataRecord& record : decision.records) {
    const auto* topic = std::get_if<TopicRecord>(&record);
    if (!appended || topic == nullptr) continue;
    const auto moved = set_aside_strays(topic->name);
    if (!moved) append_refused("metadata log", moved.error());
    appended = moved.has_value();
  }
  if (appended && !decision.records.empty()) {
    const auto done = metadata_->log.append(encode(decision.records));
    if (!done) append_refused("metadata log", done.error());
    appended = done.has_value();
    if (appended) {
      ++metadata_->appended;
      for (const MetadataRecord& record : decision.records) {
        if (const auto* topic = std::get_if<TopicRecord>(&record)) {
          metadata_->new_topics[topic->name] = metadata_->appended;
        }
        replay(record);
      }
    }
  }
  if (!appended) {
    refuse(decision, ErrorCode::kKafkaStorageError);
    return false;
  }
  std::vector<Need> needs;
  add_metadata_need(needs);
  answer_when(needs, std::move(decision.answers), ErrorCode::kKafkaStorageError);
  return true;
}

bool Core::commit(GroupDecision decision) {
  constexpr ErrorCode kRefused = ErrorCode::kCoordinatorNotAvailable;
  const TopicPartition name{std::string(kOffsetsTopic), decision.partition};
  if (!ensure_offsets_topic()) {
    refuse(decision, kRefused);
    return false;
  }
  auto opened = partitions_->open(name, now_.wall);
  if (!opened || *opened == nullptr) {
    warn("unusable partitions", fmt::format("{}-{}: {}", kOffsetsTopic, decision.partition.value,
                                            opened ? "no such partition" : opened.error().message));
    refuse(decision, kRefused);
    return false;
  }
  Partition& partition = **opened;
  if (!decision.records.empty()) {
    wire::BatchBuilder batch;
    for (const GroupRecord& record : decision.records) {
      batch.add(to_unix_ms(now_.wall), ByteView(record.key),
                record.value ? std::optional<ByteView>(*record.value) : std::nullopt);
    }
    const ByteBuffer bytes = batch.build();
    const auto done = partition.log->append({.batches = bytes}, now_.wall);
    if (!done) {
      append_refused(fmt::format("{}-{}", kOffsetsTopic, decision.partition.value), done.error());
      refuse(decision, kRefused);
      return false;
    }
    for (const GroupRecord& record : decision.records) {
      groups_->replay(decision.partition, record.key,
                      record.value ? std::optional<ByteView>(*record.value) : std::nullopt, now_.wall);
    }
    appended(partition, bytes.size());
    shrink(partition);
  }
  std::vector<Need> needs;
  bool lost = !add_need(partition, needs);
  for (const PartitionId other : decision.also_read) {
    const auto read = partitions_->open({name.topic, other}, now_.wall);
    lost = lost || !read || *read == nullptr || !add_need(**read, needs);
  }
  if (lost) {
    refuse(decision, kRefused);
    return false;
  }
  if (partition.config.durable_acks()) add_metadata_need(needs);
  answer_when(needs, std::move(decision.answers), kRefused);
  return true;
}

/// What the partition shows must be durable. False when it never will be.
bool Core::add_need(const Partition& partition, std::vector<Need>& needs) {
  const std::int64_t end = partition.log->end_offset().value;
  if (!partition.config.durable_acks() || end <= partition.log->durable_offset().value) return true;
  needs.push_back({partition.id, end});
  return !partition.log->read_only();
}

/// Answers may speak of a topic or a setting that is only a moment old.
void Core::add_metadata_need(std::vector<Need>& needs) const {
  if (metadata_->appended > metadata_->durable && !metadata_->failed)
    needs.push_back({kMetadataLog, metadata_->appended});
}

void Core::answer_when(const std::vector<Need>& needs, std::vector<Answer> answers, ErrorCode on_failure) {
  if (answers.empty()) return;
  if (needs.empty()) {
    for (Answer& answer : answers) reply(answer.request, std::move(answer.response));
    return;
  }
  Pending pending;
  pending.answers = std::move(answers);
  pending.on_failure = on_failure;
  pending_.emplace(waits_.add(needs), std::move(pending));
}

void Core::reply_when_durable(RequestId id, ProduceAnswer answer) {
  if (answer.needs.empty()) {
    reply(id, std::move(answer.response), answer.mute);
    return;
  }
  // The records are in the log: only the answer has to be kept.
  if (const auto it = open_.find(id); it != open_.end()) {
    finished_.emplace_back(std::make_unique<Open>())->request.message = std::move(it->second->request.message);
    it->second->request.prepared.reset();
  }
  std::vector<Need> needs = answer.needs;
  add_metadata_need(needs);
  Pending pending;
  pending.producer = id;
  pending.produce = std::move(answer);
  pending_.emplace(waits_.add(needs), std::move(pending));
}

void Core::settle(const std::vector<DurableWaits::Settled>& settled) {
  for (const auto& [ticket, failed] : settled) {
    auto node = pending_.extract(ticket);
    WEIR_ASSERT(!node.empty());
    Pending& pending = node.mapped();
    if (pending.producer != kNoRequest) {
      ProduceAnswer& produce = pending.produce;
      for (const std::size_t need : failed) {
        for (std::size_t i = 0; i < produce.slots.size(); ++i) {
          if (need < produce.needs.size() && i != need) continue;  // The metadata log's need stands for all of them.
          auto& slot =
              produce.response->responses[produce.slots[i].topic].partition_responses[produce.slots[i].partition];
          slot.error_code = ErrorCode::kKafkaStorageError;
          slot.base_offset = slot.log_append_time_ms = slot.log_start_offset = -1;
        }
      }
      reply(pending.producer, std::move(produce.response), produce.mute);
    }
    for (Answer& answer : pending.answers) {
      const Request* request = open(answer.request);
      if (request == nullptr) continue;
      reply(answer.request, failed.empty() ? std::move(answer.response) : answer.refuse(*request, pending.on_failure));
    }
  }
}

void Core::replay(const MetadataRecord& record) {
  struct Visitor {
    Core& core;
    void operator()(const ClusterRecord& r) { core.cluster_id_ = r.cluster_id; }
    void operator()(const TopicRecord& r) {
      core.topics_.replay(r);
      core.deleted_topics_.erase(r.name);
    }
    void operator()(const TopicDeletedRecord& r) {
      const Topic* topic = core.topics_.find(r.name);
      if (topic == nullptr || topic->id != r.id) return;
      const std::int32_t count = topic->partitions;
      core.topics_.replay(r);
      if (core.partitions_ == nullptr) {
        core.deleted_topics_.insert(r.name);
        return;
      }
      core.removals_unsynced_ = true;
      std::vector<LogId> closing;
      core.partitions_->each([&](Partition& partition) {
        if (partition.name.topic == r.name) closing.push_back(partition.id);
      });
      std::vector<RequestId> watching;
      for (const LogId id : closing) {
        const auto& fetches = core.partitions_->find(id)->fetches;
        watching.insert(watching.end(), fetches.begin(), fetches.end());
      }
      for (auto& work : core.partitions_->remove(r.name, r.id, count)) {
        core.metadata_->removals.emplace_back(core.metadata_->appended, std::move(work));
      }
      core.checkpoint_due_ = true;
      for (const LogId id : closing) core.settle(core.waits_.failed(id));
      for (const RequestId id : watching) core.fetch_due(id);
      core.groups_->topic_deleted(r.name);
    }
    void operator()(const ConfigRecord& r) {
      core.topics_.replay(r);
      if (r.resource_type == kBrokerResource) {
        const auto done = core.config_.alter(r.key, r.value ? std::optional<std::string_view>(*r.value) : std::nullopt);
        if (!done) log::warn("metadata log: {}", done.error().message);
      }
      if (core.partitions_ == nullptr) return;
      core.partitions_->refresh(r.resource_type == kBrokerResource ? "" : r.resource_name);
      core.partitions_->each([&](Partition& partition) {
        core.dirty_.push_back(partition.id);  // flush.messages may have changed
        core.advanced(partition);
      });
    }
    void operator()(const QuotaRecord& r) { core.quotas_->replay(r); }
    void operator()(const ProducerIdsRecord& r) { core.producer_ids_.replay(r); }
  };
  std::visit(Visitor{*this}, record);
}

PartitionId Core::group_partition(std::string_view group) const {
  const Topic* topic = topics_.find(kOffsetsTopic);
  return partition_of_group(group, topic != nullptr ? topic->partitions : config_.offsets_topic_num_partitions);
}

bool Core::ensure_offsets_topic() {
  if (topics_.find(kOffsetsTopic) != nullptr) return true;
  const std::string name(kOffsetsTopic);
  return commit(
      MetadataDecision{.records = {TopicRecord{name, wire::random_uuid(), config_.offsets_topic_num_partitions},
                                   ConfigRecord{kTopicResource, name, "cleanup.policy", "compact"},
                                   ConfigRecord{kTopicResource, name, "compression.type", "producer"}},
                       .answers = {}});
}

// ---- Appends and fsync
// ---------------------------------------------------------------------------------------------------

void Core::append_refused(std::string_view log, const Error& error) {
  ++counts_.refused_appends;
  warn("refused appends", fmt::format("{}: not appended: {}", log, error.message));
}

void Core::appended(Partition& partition, std::uint64_t bytes) {
  partition.unsynced_bytes += bytes;
  dirty_.push_back(partition.id);
  if (!partition.config.durable_acks()) advanced(partition);
}

void Core::advanced(Partition& partition) {
  settle(waits_.reached(partition.id, partition.high_watermark().value));
  wake_fetches(partition);
}

void Core::start_syncs() {
  std::vector<LogId> dirty;
  dirty.swap(dirty_);
  for (const LogId id : dirty) {
    Partition* partition = partitions_->find(id);
    if (partition == nullptr || !partition->sync_due()) continue;
    partition->syncing = partition->log->prepare_sync();
    if (const auto& why = partition->log->no_checkpoint()) {
      warn("postponed recovery points", why->message + "; the next start will take longer");
    }
    partition->unsynced_bytes = 0;
    effects_.push_back(Sync{id, partition->syncing->work});
  }
  const bool in_turn = !removals_unsynced_ || !checkpoint_out_;
  if (metadata_->appended > metadata_->durable && !metadata_->syncing && !metadata_->failed && in_turn) {
    metadata_->syncing = metadata_->appended;
    storage::DiskWork work = metadata_->log.prepare_sync();
    if (std::exchange(removals_unsynced_, false)) {
      // Neither the old files nor their recovery points may come back for a topic of the same name.
      storage::DiskWork points;
      if (std::exchange(checkpoint_due_, false) && directory_->checkpoint_due()) {
        points = directory_->checkpoint();
        checkpoint_out_ = metadata_->with_checkpoint = true;
      }
      work = [&files = files_, path = directory_->path(), points = std::move(points),
              sync = std::move(work)]() -> Result<void> {
        if (auto done = files.sync_directory(path); !done) return done;
        if (points && !points()) {  // then there are none any more, which is as good
          if (auto done = files.sync_directory(path); !done) return done;
        }
        return sync();
      };
    }
    effects_.push_back(Sync{kMetadataLog, std::move(work)});
  }
  if (checkpoint_due_ && !checkpoint_out_) {
    checkpoint_due_ = false;
    if (!directory_->checkpoint_due()) return;
    checkpoint_out_ = true;
    effects_.push_back(Sync{kCheckpointLog, directory_->checkpoint()});
  }
}

Effects Core::synced(Now now, LogId log, Result<void> outcome) {
  begin(now);
  if (log == kMetadataLog) {
    metadata_synced(outcome);
  } else if (log == kCheckpointLog) {
    checkpoint_out_ = false;
    if (!outcome) {
      warn("unwritten recovery points", "recovery points cannot be written: " + outcome.error().message);
    }
  } else if (Partition* partition = partitions_->find(log)) {
    partition_synced(*partition, outcome);
  }
  return end();
}

void Core::metadata_synced(const Result<void>& outcome) {
  const std::int64_t position = *std::exchange(metadata_->syncing, std::nullopt);
  if (std::exchange(metadata_->with_checkpoint, false)) checkpoint_out_ = false;
  if (outcome) {
    metadata_->durable = position;
    std::erase_if(metadata_->new_topics, [&](const auto& topic) { return topic.second <= position; });
    std::erase_if(metadata_->removals, [&](auto& removal) {
      if (removal.first > position) return false;
      effects_.push_back(Chore{std::move(removal.second)});
      return true;
    });
    settle(waits_.reached(kMetadataLog, position));
    return;
  }
  log::error("metadata log: fsync failed ({}): no topic or setting can be changed until the broker is restarted",
             outcome.error().message);
  metadata_->failed = true;
  metadata_->removals.clear();  // their topics may be there again after a restart, and then get them back
  // Nothing may be promised of a topic that a power cut takes back.
  for (const auto& [name, position] : metadata_->new_topics) {
    if (const Topic* topic = topics_.find(name)) topics_.replay(TopicDeletedRecord{name, topic->id});
  }
  metadata_->new_topics.clear();
  settle(waits_.failed(kMetadataLog));
}

void Core::partition_synced(Partition& partition, const Result<void>& outcome) {
  const storage::SyncPoint point = *std::exchange(partition.syncing, std::nullopt);
  partition.log->synced(point, outcome);
  checkpoint_due_ |= point.checkpoint;
  if (partition.removed) {
    partitions_->forget(partition.id);
    return;
  }
  if (!outcome) {
    log::error("{}-{}: fsync failed ({}): read-only up to offset {} until the broker is restarted",
               partition.name.topic, partition.name.partition.value, outcome.error().message,
               partition.log->durable_offset().value);
    settle(waits_.failed(partition.id));
    return;
  }
  if (partition.snapshot) snapshot_durable(partition);
  dirty_.push_back(partition.id);
  if (partition.config.durable_acks()) advanced(partition);
}

}  // namespace weir::broker
