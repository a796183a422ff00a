// One classic consumer group: who is in it, what they want, what they got, and what the group has committed.
//
// Bookkeeping only: when members may join, when a rebalance ends and who is answered is the coordinator's
// (group/coordinator.h), which owns every Group. Core loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "broker/request.h"
#include "protocol/messages/11_join_group.h"
#include "protocol/records/group_records.h"
#include "weir/types.h"

namespace weir::broker {

/// Empty: no members, maybe offsets. PreparingRebalance: waiting for members to join. CompletingRebalance: waiting for
/// the leader's assignment. Stable: everybody has one. A group that does not exist is described as Dead.
enum class GroupState { kEmpty, kPreparingRebalance, kCompletingRebalance, kStable, kDead };
/// Kafka's name: "PreparingRebalance".
std::string_view name(GroupState state);

using MemberProtocols = std::vector<protocol::JoinGroupRequest::JoinGroupRequestProtocol>;

/// Timeouts shorter than this, as clients may ask for, are taken as this.
inline constexpr Duration kShortestTimeout = std::chrono::milliseconds(100);

struct Member {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string client_host;
  Duration rebalance_timeout{};
  Duration session_timeout{};
  MemberProtocols protocols;  ///< What it supports, best first.
  ByteBuffer assignment;
  bool is_new = false;           ///< Has not been told its id yet, so it cannot send heartbeats.
  MonoTime expires{};            ///< Out of the group when nothing is heard until then.
  std::optional<MonoTime> wake;  ///< When the coordinator looks at `expires` next.
  RequestId join = kNoRequest;   ///< Its JoinGroup, while it waits for the others.
  RequestId sync = kNoRequest;   ///< Its SyncGroup, while it waits for the leader.

  /// What it sent along with `protocol`; empty when it does not support it.
  ByteView metadata(std::string_view protocol) const;
};

struct CommittedOffset {
  Offset offset;
  std::int32_t leader_epoch = -1;
  std::string metadata;
  WallTime committed{};
  std::optional<WallTime> expires;  ///< Only from clients of Kafka before 2.1 that named a retention time.
  bool operator==(const CommittedOffset&) const = default;
};

/// "<prefix>-<random UUID>", as Kafka names members: the prefix is the group.instance.id or the client id.
std::string new_member_id(std::string_view prefix);

class Group {
 public:
  explicit Group(std::string id) : id_(std::move(id)) {}

  const std::string& id() const { return id_; }

  // ---- Members ------------------------------------------------------------------------------------------------------

  const std::map<std::string, Member, std::less<>>& members() const { return members_; }
  Member* member(std::string_view id);
  const Member* member(std::string_view id) const;
  /// The id of the member with this group.instance.id; null when there is none.
  const std::string* static_member(std::string_view instance_id) const;

  Member& add(Member member);
  void remove(std::string_view member_id);
  /// A static member came back under a new id: the new one takes everything over, leadership included. The returned old
  /// member is no part of the group any more; its parked requests are the caller's to answer.
  Member replace_static(std::string_view instance_id, std::string new_id);
  void park_join(Member& member, RequestId request);
  /// kNoRequest when it waits in none.
  RequestId take_join(Member& member);

  bool is_leader(std::string_view member_id) const { return leader && *leader == member_id; }
  /// Keeps the leader if it is joining, else takes the first member that is. False when none is.
  bool elect_joined_leader();

  std::size_t awaiting_join() const { return awaiting_join_; }
  bool all_joined() const { return awaiting_join_ == members_.size() && pending.empty(); }
  /// The longest that a member asks for.
  Duration rebalance_timeout() const;

  // ---- Protocols ----------------------------------------------------------------------------------------------------

  /// Whether a member with these may be part of the group: the type fits, and one protocol is supported by all.
  bool supports(std::string_view type, const MemberProtocols& protocols) const;
  /// The protocol that everybody supports and most prefer. The group has members.
  std::string select_protocol() const;
  /// Topics that members of a "consumer" group have subscribed to; nothing when that cannot be told.
  std::optional<std::set<std::string>> subscribed_topics() const;

  /// What a member is told about the current generation; its leader is told who the others are too.
  protocol::JoinGroupResponse generation_for(const Member& member, bool with_members) const;

  // ---- Records ------------------------------------------------------------------------------------------------------

  /// The group as Kafka stores it. `assignments` by member id replace those of the members.
  protocol::GroupMetadataValue to_record(WallTime now,
                                         const std::map<std::string, ByteBuffer, std::less<>>* assignments) const;
  /// Replaces members and generation by what was stored: Stable when it has members, else Empty.
  void load(const protocol::GroupMetadataValue& value);

  /// Neither members nor offsets, nor anybody on the way in.
  bool unused() const { return members_.empty() && pending.empty() && offsets.empty(); }

  // ---- State, the coordinator's to change ---------------------------------------------------------------------------

  GroupState state = GroupState::kEmpty;
  std::int32_t generation = 0;
  std::optional<std::string> protocol_type;
  std::optional<std::string> protocol_name;
  std::optional<std::string> leader;
  std::optional<WallTime> state_since;  ///< When it was last stored; nothing for a group that only commits offsets.
  /// The value of its latest group record; while there is one, removing the group needs a tombstone.
  std::optional<ByteBuffer> stored;

  /// Members that were told their id and asked to join again with it (KIP-394), until when.
  std::map<std::string, MonoTime, std::less<>> pending;
  /// Members that have not asked for their assignment in this generation.
  std::set<std::string, std::less<>> pending_sync;

  /// The rebalance began from Empty: it is delayed as long as new members keep coming
  /// (group.initial.rebalance.delay.ms).
  bool initial_rebalance = false;
  bool member_added_during_delay = false;
  Duration initial_delay{};
  Duration initial_remaining{};
  std::optional<MonoTime> join_deadline;
  std::optional<MonoTime> sync_deadline;

  std::map<TopicPartition, CommittedOffset> offsets;

 private:
  std::string id_;
  std::map<std::string, Member, std::less<>> members_;
  std::map<std::string, std::string, std::less<>> static_members_;  // group.instance.id -> member id
  std::size_t awaiting_join_ = 0;
};

}  // namespace weir::broker
