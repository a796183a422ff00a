// Produce: check, append, answer when durable.
#include "protocol/messages/0_produce.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "broker/batch_check.h"
#include "broker/core.h"
#include "broker/handlers/handler.h"
#include "broker/quota.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using protocol::ProduceRequest;
using protocol::ProduceResponse;
using PartitionResponse = ProduceResponse::PartitionProduceResponse;

/// What the compressed batches of compacted topics may become in one request when their keys are looked at: all of them
/// together, so that many small batches cannot hold up the core loop. The first one may take it whole.
constexpr Bytes kMaxPlain = 64 * kMiB;

/// The one client that may write to internal topics, as in Kafka.
constexpr std::string_view kAdminClient = "__admin_client";

struct Refusal {
  ErrorCode error;
  std::string message;
};

PartitionResponse refusal(std::int32_t index, Refusal why) {
  PartitionResponse response{.index = index, .error_code = why.error, .base_offset = -1};
  if (!why.message.empty()) response.error_message = std::move(why.message);
  return response;
}

/// What the topic's settings say against the header of a batch that is sound in itself.
std::optional<Refusal> check_header(const TopicConfig& config, const TopicPartition& name,
                                    const wire::BatchHeader& header) {
  if (static_cast<std::int64_t>(header.size()) > config.max_message_bytes) {
    return Refusal{
        ErrorCode::kMessageTooLarge,
        fmt::format("The record batch size in the append to {}-{} is {} bytes which exceeds the maximum configured "
                    "value of {}.",
                    name.topic, name.partition.value, header.size(), config.max_message_bytes)};
  }
  if (header.transactional()) {
    return Refusal{ErrorCode::kInvalidTxnState,
                   "Transactions are not served by this broker: produce without a transactional.id"};
  }
  return std::nullopt;
}

/// Looks into a compressed batch. `plain_left`: of kMaxPlain.
tl::expected<wire::BatchContents, Refusal> look_into(ByteView bytes, Bytes& plain_left) {
  const bool first = plain_left == kMaxPlain;
  auto contents = wire::check_records(bytes, plain_left);
  if (contents) {
    plain_left -= contents->plain_size;
    return *contents;
  }
  plain_left = 0;  // it may have been used up in finding out
  if (contents.error().fault == wire::BatchFault::kTooLarge && !first) {
    // Retriable: what was appended is not sent again, so that sooner or later this batch comes first.
    return tl::unexpected(
        Refusal{ErrorCode::kKafkaStorageError,
                fmt::format("The {} bytes to which the compressed batches for compacted topics in one request may "
                            "decompress are used up: send this one again",
                            kMaxPlain)});
  }
  return tl::unexpected(Refusal{to_error(contents.error().fault), contents.error().message});
}

/// The same of its records. `contents`: unless it is compressed and was not looked into.
std::optional<Refusal> check_contents(const TopicConfig& config, const TopicPartition& name,
                                      const wire::BatchHeader& header,
                                      const std::optional<wire::BatchContents>& contents, WallTime now) {
  if (config.compacted && contents && contents->has_null_key) {
    return Refusal{ErrorCode::kInvalidRecord,
                   fmt::format("Compacted topic cannot accept message without key in topic partition "
                               "{}-{}.",
                               name.topic, name.partition.value)};
  }
  constexpr std::int64_t kNone = -1;
  // Kafka looks at the type only where it looks at no timestamp.
  if (header.log_append_time() && (config.log_append_time || header.max_timestamp == kNone)) {
    return Refusal{ErrorCode::kInvalidTimestamp,
                   "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime"};
  }
  if (!config.log_append_time) {
    const std::int64_t clock = to_unix_ms(now);
    const std::int64_t oldest = contents ? contents->min_timestamp : header.base_timestamp;
    const std::int64_t newest = contents ? contents->max_timestamp : header.max_timestamp;
    const bool old = oldest != kNone && oldest < clock - config.timestamp_before_max_ms;
    const bool early = newest > clock && newest - clock > config.timestamp_after_max_ms;
    if (old || early) {
      return Refusal{
          ErrorCode::kInvalidTimestamp,
          fmt::format(
              "Timestamp {} of message is out of range. The timestamp should be within [{}, {}]", old ? oldest : newest,
              std::max<std::int64_t>(0, clock - std::min(clock, config.timestamp_before_max_ms)),
              config.timestamp_after_max_ms > INT64_MAX - clock ? INT64_MAX : clock + config.timestamp_after_max_ms)};
    }
  }
  return std::nullopt;
}

Refusal storage_refusal(Core& core, const TopicPartition& name, const Error& error) {
  core.append_refused(fmt::format("{}-{}", name.topic, name.partition.value), error);
  return {ErrorCode::kKafkaStorageError, error.message};
}

struct Append {
  PartitionResponse response;
  std::optional<Need> need;
};

Append append(Core& core, const TopicPartition& name, const ProduceRequest& request, const CheckedRecords& checked,
              const std::optional<SharedBytes>& records, Bytes& plain_left) {
  const std::int32_t index = name.partition.value;
  const auto refused = [&](ErrorCode error, std::string message = {}) {
    return Append{refusal(index, {error, std::move(message)}), std::nullopt};
  };
  if (!core.topics().has(name)) return refused(ErrorCode::kUnknownTopicOrPartition);
  if (checked.error != ErrorCode::kNone) return refused(checked.error, checked.message);
  const auto opened = core.partitions().open(name, core.now().wall);
  if (!opened) return {refusal(index, storage_refusal(core, name, opened.error())), std::nullopt};
  Partition& partition = **opened;
  if (request.acks == -1 && partition.config.min_insync_replicas > 1) {
    return refused(ErrorCode::kNotEnoughReplicas,
                   fmt::format("min.insync.replicas is {} and this broker is the only copy; set it to 1",
                               partition.config.min_insync_replicas));
  }
  const ByteView bytes = records->view();
  if (auto why = check_header(partition.config, name, checked.header)) {
    return {refusal(index, std::move(*why)), std::nullopt};
  }
  std::optional<wire::BatchContents> contents = checked.contents;
  if (!contents && partition.config.compacted) {
    auto looked = look_into(bytes, plain_left);
    if (!looked) return {refusal(index, std::move(looked.error())), std::nullopt};
    contents = *looked;
  }
  if (auto why = check_contents(partition.config, name, checked.header, contents, core.now().wall)) {
    return {refusal(index, std::move(*why)), std::nullopt};
  }
  storage::AppendRequest append_request{.batches = bytes};
  ByteBuffer corrected;
  if (partition.config.log_append_time) {
    append_request.log_append_ms = to_unix_ms(core.now().wall);
  } else {
    // The time index and ListOffsets go by the header, so it must not say what its records do not.
    const std::int64_t largest = contents ? contents->max_timestamp : checked.header.max_timestamp;
    if (checked.header.log_append_time() || checked.header.max_timestamp != largest) {
      corrected = to_buffer(bytes);
      wire::set_create_time(corrected, largest);
      append_request.batches = corrected;
    }
  }
  const auto done = partition.log->append(append_request, core.now().wall);
  if (!done) return {refusal(index, storage_refusal(core, name, done.error())), std::nullopt};
  switch (done->check) {
    case storage::SequenceCheck::kOutOfOrder:
      return refused(
          ErrorCode::kOutOfOrderSequenceNumber,
          fmt::format("Out of order sequence number for producer {} in partition {}-{}: {} (incoming seq. number)",
                      checked.header.producer_id.value, name.topic, index, checked.header.base_sequence));
    case storage::SequenceCheck::kFencedEpoch:
      return refused(
          ErrorCode::kInvalidProducerEpoch,
          fmt::format("Epoch of producer {} in partition {}-{} is {}, which is smaller than the last seen epoch",
                      checked.header.producer_id.value, name.topic, index, checked.header.producer_epoch));
    case storage::SequenceCheck::kDuplicate: break;
    case storage::SequenceCheck::kOk:
      core.counts().produced_bytes += bytes.size();
      core.counts().produced_records += static_cast<std::uint64_t>(checked.header.record_count);
      core.appended(partition, bytes.size());
      break;
  }
  Append result;
  result.response = {.index = index,
                     .base_offset = done->base_offset.value,
                     .log_append_time_ms = partition.config.log_append_time ? done->log_append_ms : -1,
                     .log_start_offset = partition.log->start_offset().value};
  // A duplicate waits too: its original may not be durable yet.
  const std::int64_t end = done->last_offset.value + 1;
  if (partition.config.durable_acks() && end > partition.log->durable_offset().value) {
    if (partition.log->read_only()) return refused(ErrorCode::kKafkaStorageError);
    result.need = Need{partition.id, end};
  }
  return result;
}

}  // namespace

void handle_produce(Core& core, const Request& request) {
  const auto& produce = request.as<ProduceRequest>();
  const auto& checked = *static_cast<const CheckedProduce*>(request.prepared.get());
  const bool acks_known = produce.acks >= -1 && produce.acks <= 1;

  ProduceAnswer answer{.response = std::make_shared<ProduceResponse>()};
  bool failed = false;
  Bytes plain_left = kMaxPlain;
  std::set<std::pair<std::string_view, std::int32_t>> named;
  for (std::size_t t = 0; t < produce.topic_data.size(); ++t) {
    const auto& topic = produce.topic_data[t];
    auto& topic_response = answer.response->responses.emplace_back();
    topic_response.name = topic.name;
    for (std::size_t p = 0; p < topic.partition_data.size(); ++p) {
      const auto& data = topic.partition_data[p];
      auto& response = topic_response.partition_responses.emplace_back();
      if (!acks_known) {
        response = refusal(data.index, {ErrorCode::kInvalidRequiredAcks, "acks must be -1, 0 or 1"});
      } else if (!named.emplace(topic.name, data.index).second) {
        response = refusal(data.index, {ErrorCode::kInvalidRequest, "The request names this partition twice"});
      } else if (topic.name == kOffsetsTopic && request.client_id != kAdminClient) {
        response = refusal(data.index,
                           {ErrorCode::kInvalidTopicException, "Cannot append to internal topic __consumer_offsets"});
      } else {
        auto done = append(core, {topic.name, PartitionId(data.index)}, produce, checked.topics[t][p], data.records,
                           plain_left);
        response = std::move(done.response);
        if (done.need && produce.acks != 0) {
          answer.needs.push_back(*done.need);
          answer.slots.push_back({t, p});
        }
      }
      failed |= response.error_code != ErrorCode::kNone;
    }
  }
  answer.mute = core.quotas().produced(core.now(), request, request.size);
  if (produce.acks == 0) {
    if (failed) {
      core.close(request.id, "a Produce with acks=0 failed: closing is the only way to tell the producer");
    } else {
      core.drop(request.id, answer.mute);
    }
    return;
  }
  answer.response->throttle_time_ms = static_cast<std::int32_t>(
      std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(answer.mute).count(), INT32_MAX));
  core.reply_when_durable(request.id, std::move(answer));
}

}  // namespace weir::broker
