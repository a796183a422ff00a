// The group coordinator, classic protocol: membership, rebalances, committed offsets.
//
//            first JoinGroup                all joined, or the time is up
//   Empty ----------------> PreparingRebalance ----------------> CompletingRebalance
//     ^                         ^     ^                                  |
//     | last member gone        |     | a member joins, leaves, times out| the leader's SyncGroup is stored
//     +-------------------------+     +------------ Stable <-------------+
//
// A request decides {records, answers}; offsets change only by replaying a record, and the same replay loads them at
// start. Who is joining and when time runs out lives in memory only, as in Kafka: a group record is written when a
// generation gets its assignments, when a static member is replaced and when a group becomes empty; after a restart its
// members are taken to be there until their session times out.
//
// Requests: each function takes an open request, reads its message, and answers it through the host, at once or later;
// every request is answered exactly once.
//
// Thread rule: owned by the core loop. Pure: time is a parameter, everything else is asked of the GroupHost.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "broker/broker_config.h"
#include "broker/decision.h"
#include "broker/group/group.h"
#include "broker/request.h"
#include "protocol/error_code.h"
#include "protocol/messages/11_join_group.h"
#include "protocol/messages/14_sync_group.h"
#include "weir/types.h"

namespace weir::broker {

class Core;

/// What the coordinator needs of the broker around it.
class GroupHost {
 public:
  virtual ~GroupHost() = default;
  /// As Core::commit: on return the records are replayed; or it is false, they could not be appended, and the answers
  /// were refused.
  virtual bool commit(GroupDecision decision) = 0;
  /// As Core::reply.
  virtual void reply(RequestId request, Response response) = 0;
  /// The request waits for others: it must not count against the request queue.
  virtual void wait(RequestId request) = 0;
  virtual PartitionId partition_of(std::string_view group) const = 0;
  virtual bool has(const TopicPartition& partition) const = 0;
};

class GroupCoordinator {
 public:
  explicit GroupCoordinator(Core& core);
  /// Both must outlive this.
  GroupCoordinator(const BrokerConfig& config, GroupHost& host);
  ~GroupCoordinator();

  // ---- Requests -----------------------------------------------------------------------------------------------------

  void join(Now now, const Request& request);
  void sync(Now now, const Request& request);
  void heartbeat(Now now, const Request& request);
  void leave(Now now, const Request& request);
  void commit_offsets(Now now, const Request& request);
  void fetch_offsets(const Request& request);
  void describe(const Request& request);
  void list(const Request& request);

  // ---- State --------------------------------------------------------------------------------------------------------

  /// State changes only here: while loading at start, and from GroupHost::commit. `timestamp` is the record's. Records
  /// of unknown types are left alone; a damaged one is skipped with a line in the log.
  void replay(PartitionId partition, ByteView key, std::optional<ByteView> value, WallTime timestamp);
  /// Everything is replayed: sessions of the members found start now.
  void loaded(Now now);
  /// Session timeouts, rebalance deadlines, offset expiry.
  void tick(Now now);
  /// When tick() wants to be called next, if at all.
  std::optional<MonoTime> next_deadline() const;
  /// The offsets that groups committed for the topic go too.
  void topic_deleted(std::string_view topic);

  /// What a partition of `__consumer_offsets` is there to remember: replayed, these records give the state that all its
  /// records give. None when it holds records of types that are not ours and must be left alone.
  std::optional<std::vector<GroupRecord>> live_records(PartitionId partition) const;

  /// For tests and metrics: by id.
  const std::map<std::string, Group, std::less<>>& groups() const { return groups_; }

 private:
  using ErrorCode = protocol::ErrorCode;

  // membership.cc
  struct Joining;
  ErrorCode check_join(const protocol::JoinGroupRequest& message) const;
  bool has_room(const Group& group, const std::string& member_id) const;
  void join_new(const Joining& joining, Group& group);
  void join_known(const Joining& joining, Group& group);
  void add_member(const Joining& joining, Group& group, std::string member_id);
  void update_member(const Joining& joining, Group& group, Member& member);
  void rejoin_static(const Joining& joining, Group& group, std::string new_id);
  void store_assignments(Now now, Group& group, const protocol::SyncGroupRequest& message);
  void answer_join(Group& group, Member& member, protocol::JoinGroupResponse response);
  void answer_sync(Member& member, ErrorCode error);
  void drop_member(Group& group, std::string member_id);

  // rebalance.cc
  void rebalance_or_complete(Now now, Group& group);
  void prepare_rebalance(Now now, Group& group);
  void complete_join_if_all_joined(Now now, Group& group);
  void complete_join(Now now, Group& group);
  void initial_delay_over(Now now, Group& group);
  void sync_time_over(Now now, Group& group);
  void session_over(Now now, Group& group, const std::string& member_id);
  void members_left(Now now, Group& group);
  void alive(Now now, Group& group, Member& member, Duration session);
  void wake_group_at(MonoTime when, const Group& group);

  // offsets.cc
  void schedule_expiry(Now now);
  void expire_offsets(Now now);

  Group* find(std::string_view group_id);
  Group& find_or_add(const std::string& group_id);
  void forget_if_unused(const std::string& group_id);
  bool commit(const Group& group, std::vector<GroupRecord> records, std::vector<Answer> answers);

  /// One wake-up: of a member's session, or of the group's own deadlines (no member). It may come early or be stale;
  /// who wakes looks at the deadline itself and goes back to sleep.
  struct Wake {
    MonoTime when;
    std::string group;
    std::string member;
    auto operator<=>(const Wake&) const = default;
  };

  const BrokerConfig& config_;
  std::unique_ptr<GroupHost> owned_host_;
  GroupHost& host_;
  std::map<std::string, Group, std::less<>> groups_;
  std::set<Wake> wakes_;
  std::set<PartitionId> foreign_;  // partitions with records of unknown types
  std::optional<MonoTime> next_expiry_check_;
  bool loading_ = true;
};

/// Java's String.hashCode of UTF-8 text, by which Kafka places groups on partitions of `__consumer_offsets`.
std::int32_t java_hash(std::string_view utf8);
/// abs(hash) % partitions, as Kafka has it.
PartitionId partition_of_group(std::string_view group_id, std::int32_t partitions);

}  // namespace weir::broker
