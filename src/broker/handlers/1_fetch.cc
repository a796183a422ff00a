// Fetch: whole batches up to the high watermark, or wait for them.
#include "protocol/messages/1_fetch.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/core.h"
#include "broker/handlers/handler.h"
#include "broker/quota.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using PartitionData = FetchResponse::PartitionData;

constexpr std::int8_t kReadCommitted = 1;
// KIP-227: with these epochs a request names all its partitions, whatever its session.
constexpr std::int32_t kFirstEpoch = 0;
constexpr std::int32_t kFinalEpoch = -1;

PartitionData failure(std::int32_t index, ErrorCode error) {
  return {.partition_index = index, .error_code = error, .high_watermark = -1, .records = Payload()};
}

/// One try: what can be shown now.
struct Attempt {
  FetchResponse response;
  std::vector<Partition*> partitions;
  Bytes bytes = 0;
  bool failed = false;
};

PartitionData read(Core& core, const TopicPartition& name, const FetchRequest::FetchPartition& wanted, bool committed,
                   Bytes room, Attempt& attempt) {
  const std::int32_t index = wanted.partition;
  if (wanted.current_leader_epoch > 0) return failure(index, ErrorCode::kUnknownLeaderEpoch);
  const auto opened = core.partitions().open(name, core.now().wall);
  if (!opened) {
    core.warn("failed reads", fmt::format("{}-{}: cannot be read: {}", name.topic, index, opened.error().message));
    return failure(index, ErrorCode::kKafkaStorageError);
  }
  if (*opened == nullptr) return failure(index, ErrorCode::kUnknownTopicOrPartition);
  Partition& partition = **opened;
  const Offset from(wanted.fetch_offset);
  if (from < partition.log->start_offset() || from > partition.log->end_offset()) {
    return failure(index, ErrorCode::kOffsetOutOfRange);
  }
  PartitionData data{.partition_index = index,
                     .high_watermark = partition.high_watermark().value,
                     .last_stable_offset = partition.last_stable_offset().value,
                     .log_start_offset = partition.log->start_offset().value,
                     .records = Payload()};
  if (committed) data.aborted_transactions.emplace();
  attempt.partitions.push_back(&partition);
  const Offset up_to = committed ? partition.last_stable_offset() : partition.high_watermark();
  if (from >= up_to) return data;
  const Bytes most = std::min(room, static_cast<Bytes>(std::max(wanted.partition_max_bytes, 0)));
  auto slice = partition.log->read(from, most, up_to, attempt.bytes == 0);
  if (!slice) {
    core.warn("failed reads", fmt::format("{}-{}: cannot be read at offset {}: {}", name.topic, index, from.value,
                                          slice.error().message));
    return failure(index, slice.error().kind == ErrorKind::kNotFound ? ErrorCode::kOffsetOutOfRange
                                                                     : ErrorCode::kKafkaStorageError);
  }
  attempt.bytes += slice->payload.size();
  data.records = std::move(slice->payload);
  return data;
}

Attempt read_all(Core& core, const Request& request) {
  const auto& fetch = request.as<FetchRequest>();
  Attempt attempt;
  const Bytes limit =
      std::min({static_cast<Bytes>(std::max(fetch.max_bytes, 0)), static_cast<Bytes>(core.config().fetch_max_bytes),
                core.quotas().max_fetch_bytes(request)});
  for (const auto& topic : fetch.topics) {
    auto& response = attempt.response.responses.emplace_back();
    response.topic = topic.topic;
    for (const auto& wanted : topic.partitions) {
      const Bytes room = limit > attempt.bytes ? limit - attempt.bytes : 0;
      response.partitions.push_back(read(core, {topic.topic, PartitionId(wanted.partition)}, wanted,
                                         fetch.isolation_level == kReadCommitted, room, attempt));
      attempt.failed |= response.partitions.back().error_code != ErrorCode::kNone;
    }
  }
  return attempt;
}

}  // namespace

void handle_fetch(Core& core, const Request& request) {
  const auto& fetch = request.as<FetchRequest>();
  if (fetch.session_epoch != kFirstEpoch && fetch.session_epoch != kFinalEpoch) {
    // We keep no sessions (every answer says session 0); the client falls back to full requests.
    core.reply(request.id, respond(FetchResponse{.error_code = ErrorCode::kFetchSessionIdNotFound}));
    return;
  }
  Attempt attempt = read_all(core, request);
  const bool enough = attempt.bytes >= static_cast<Bytes>(std::max(fetch.min_bytes, 0));
  if (!enough && !attempt.failed && !attempt.partitions.empty() && fetch.max_wait_ms > 0 && core.may_wait(request.id)) {
    core.wait_for_records(request.id, attempt.partitions,
                          core.now().mono + std::chrono::milliseconds(fetch.max_wait_ms));
    return;
  }
  // Over quota: the answer names no partition, as Kafka's, and says for how long the connection is not read. A client
  // that finds its partitions empty asks for them one after the other, and each of those requests is throttled again.
  const Duration throttle = core.quotas().fetched(core.now(), request, attempt.bytes);
  if (throttle > Duration::zero()) {
    core.quotas().unfetched(core.now(), request, attempt.bytes);
    attempt.response.responses.clear();
    attempt.response.throttle_time_ms = static_cast<std::int32_t>(
        std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(throttle).count(), INT32_MAX));
  }
  if (throttle == Duration::zero()) core.counts().fetched_bytes += attempt.bytes;
  core.reply(request.id, respond(std::move(attempt.response)), throttle);
}

}  // namespace weir::broker
