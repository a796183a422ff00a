// ListOffsets: the first, the last, or the offset of a time.
#include "protocol/messages/2_list_offsets.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "broker/core.h"
#include "broker/handlers/handler.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using protocol::ListOffsetsResponse;
using PartitionResponse = ListOffsetsResponse::ListOffsetsPartitionResponse;

// The timestamps that mean something else, and the first version that may ask for them.
constexpr std::int64_t kLatest = -1;
constexpr std::int64_t kEarliest = -2;
constexpr std::int64_t kMaxTimestamp = -3;
constexpr std::int64_t kEarliestLocal = -4;
constexpr std::int64_t kLatestTiered = -5;
constexpr std::int64_t kEarliestPendingUpload = -6;
int first_version(std::int64_t timestamp) {
  switch (timestamp) {
    case kMaxTimestamp: return 7;
    case kEarliestLocal: return 8;
    case kLatestTiered: return 9;
    case kEarliestPendingUpload: return 11;
    default: return 0;
  }
}

PartitionResponse look_up(Core& core, const TopicPartition& name, std::int64_t timestamp, int version) {
  PartitionResponse response{.partition_index = name.partition.value};
  const auto fail_with = [&](ErrorCode error) {
    response.error_code = error;
    return response;
  };
  const auto opened = core.partitions().open(name, core.now().wall);
  if (!opened) return fail_with(ErrorCode::kKafkaStorageError);
  if (*opened == nullptr) return fail_with(ErrorCode::kUnknownTopicOrPartition);
  if (version < first_version(timestamp) || timestamp < kEarliestPendingUpload)
    return fail_with(ErrorCode::kUnsupportedVersion);
  Partition& partition = **opened;
  const auto found = [&](Offset offset, std::int64_t at) {
    response.offset = offset.value;
    response.timestamp = at;
    response.leader_epoch = 0;
    return response;
  };
  switch (timestamp) {
    case kLatest: return found(partition.last_stable_offset(), -1);
    case kEarliest:
    case kEarliestLocal: return found(partition.log->start_offset(), -1);
    case kLatestTiered:
    case kEarliestPendingUpload: return response;  // Nothing is tiered.
    default: break;
  }
  const auto hit =
      timestamp == kMaxTimestamp ? partition.log->find_max_timestamp() : partition.log->find_timestamp(timestamp);
  if (!hit) {
    core.warn("failed reads", fmt::format("{}-{}: time index cannot be read: {}", name.topic, name.partition.value,
                                          hit.error().message));
    return fail_with(ErrorCode::kKafkaStorageError);
  }
  // A record that consumers cannot see yet is not there for them.
  if (!*hit || (*hit)->offset >= partition.last_stable_offset()) return response;
  return found((*hit)->offset, (*hit)->timestamp);
}

}  // namespace

void handle_list_offsets(Core& core, const Request& request) {
  const auto& list = request.as<protocol::ListOffsetsRequest>();
  ListOffsetsResponse response;
  // A partition asked for twice is refused twice, as in Kafka: clients tell answers apart by partition.
  std::map<std::pair<std::string_view, std::int32_t>, int> asked;
  for (const auto& topic : list.topics) {
    for (const auto& partition : topic.partitions) ++asked[{topic.name, partition.partition_index}];
  }
  for (const auto& topic : list.topics) {
    auto& out = response.topics.emplace_back();
    out.name = topic.name;
    for (const auto& partition : topic.partitions) {
      if (asked[{topic.name, partition.partition_index}] > 1) {
        out.partitions.push_back(
            {.partition_index = partition.partition_index, .error_code = ErrorCode::kInvalidRequest});
        continue;
      }
      if (partition.current_leader_epoch > 0) {
        out.partitions.push_back(
            {.partition_index = partition.partition_index, .error_code = ErrorCode::kUnknownLeaderEpoch});
        continue;
      }
      out.partitions.push_back(
          look_up(core, {topic.name, PartitionId(partition.partition_index)}, partition.timestamp, request.version));
    }
  }
  core.reply(request.id, respond(std::move(response)));
}

}  // namespace weir::broker
