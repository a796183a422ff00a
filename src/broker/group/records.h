// The records of `__consumer_offsets`, in Kafka's formats: what is written, and what a key says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "broker/decision.h"
#include "broker/group/group.h"
#include "protocol/records/group_records.h"
#include "weir/types.h"

namespace weir::broker {

/// Written without flexible versions, so that every Kafka since 2.1 and its tools can read them.
inline constexpr std::int16_t kOffsetValueVersion = 3;
/// Carries an expiry of its own, which later versions cannot.
inline constexpr std::int16_t kExpiringOffsetValueVersion = 1;
inline constexpr std::int16_t kGroupValueVersion = 3;

GroupRecord offset_record(std::string_view group, const TopicPartition& partition, const CommittedOffset& offset);
GroupRecord offset_tombstone(std::string_view group, const TopicPartition& partition);
GroupRecord group_record(std::string_view group, const protocol::GroupMetadataValue& value);
/// The same with the value as it was stored before.
GroupRecord group_record(std::string_view group, ByteView value);
GroupRecord group_tombstone(std::string_view group);

Result<CommittedOffset> decode_offset(ByteView value);
/// A time that somebody else wrote: whatever the number says, within what a WallTime can hold and be moved by years.
WallTime stored_time(std::int64_t unix_ms);

/// A key of a record type that is not ours (share groups, KIP-848): left alone.
struct UnknownKey {
  std::int16_t type = 0;
};
using GroupKey = std::variant<protocol::OffsetCommitKey, protocol::GroupMetadataKey, UnknownKey>;
Result<GroupKey> decode_group_key(ByteView key);

}  // namespace weir::broker
