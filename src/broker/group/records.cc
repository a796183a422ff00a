#include "broker/group/records.h"

#include <algorithm>
#include <utility>

#include "protocol/codec.h"
#include "wire/reader.h"

namespace weir::broker {
namespace {

ByteBuffer offset_key(std::string_view group, const TopicPartition& partition) {
  const protocol::OffsetCommitKey key{
      .group = std::string(group), .topic = partition.topic, .partition = partition.partition.value};
  return protocol::encode_key(key);
}
ByteBuffer group_key(std::string_view group) {
  const protocol::GroupMetadataKey key{.group = std::string(group)};
  return protocol::encode_key(key);
}

}  // namespace

GroupRecord offset_record(std::string_view group, const TopicPartition& partition, const CommittedOffset& offset) {
  const protocol::OffsetCommitValue value{.offset = offset.offset.value,
                                          .leader_epoch = offset.leader_epoch,
                                          .metadata = offset.metadata,
                                          .commit_timestamp = to_unix_ms(offset.committed),
                                          .expire_timestamp = offset.expires ? to_unix_ms(*offset.expires) : -1};
  return {offset_key(group, partition),
          protocol::encode_versioned(value, offset.expires ? kExpiringOffsetValueVersion : kOffsetValueVersion)};
}

GroupRecord offset_tombstone(std::string_view group, const TopicPartition& partition) {
  return {offset_key(group, partition), std::nullopt};
}

GroupRecord group_record(std::string_view group, const protocol::GroupMetadataValue& value) {
  return {group_key(group), protocol::encode_versioned(value, kGroupValueVersion)};
}

GroupRecord group_record(std::string_view group, ByteView value) { return {group_key(group), to_buffer(value)}; }

GroupRecord group_tombstone(std::string_view group) { return {group_key(group), std::nullopt}; }

WallTime stored_time(std::int64_t unix_ms) {
  constexpr std::int64_t kYear2200 = 7258118400000;
  return from_unix_ms(std::clamp<std::int64_t>(unix_ms, 0, kYear2200));
}

Result<CommittedOffset> decode_offset(ByteView bytes) {
  auto value = protocol::decode_versioned<protocol::OffsetCommitValue>(bytes);
  if (!value) return tl::unexpected(value.error());
  CommittedOffset offset{Offset(value->offset), value->leader_epoch, std::move(value->metadata),
                         stored_time(value->commit_timestamp), std::nullopt};
  if (value->expire_timestamp >= 0) offset.expires = stored_time(value->expire_timestamp);
  return offset;
}

Result<GroupKey> decode_group_key(ByteView bytes) {
  wire::Reader reader(bytes);
  const std::int16_t type = reader.int16();
  if (!reader.ok()) return tl::unexpected(reader.result().error());
  // Types 0 and 1 are the same key; Kafka wrote 0 before 0.9.
  if (type == 0 || type == protocol::OffsetCommitKey::kRecordType) {
    return protocol::decode<protocol::OffsetCommitKey>(reader, 0).map(
        [](auto key) { return GroupKey(std::move(key)); });
  }
  if (type == protocol::GroupMetadataKey::kRecordType) {
    return protocol::decode<protocol::GroupMetadataKey>(reader, 0).map(
        [](auto key) { return GroupKey(std::move(key)); });
  }
  return GroupKey(UnknownKey{type});
}

}  // namespace weir::broker
