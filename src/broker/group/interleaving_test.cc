// Random members joining, syncing, falling silent, leaving and coming back, in virtual time, with a disk that fills up
// and brokers that restart: what must hold whatever the order.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "broker/group/harness.h"

namespace weir::broker::testing {
namespace {

struct Client {
  std::optional<std::string> instance;
  std::int16_t version = 5;
  std::string id;
  std::int32_t generation = -1;
  std::string leader;
  std::vector<std::string> members;
  std::optional<RequestId> join, sync;
};

class Interleaving : public Harness {
 public:
  Interleaving() {
    config.group_initial_rebalance_delay_ms = *rc::gen::element(0, 1000);
    config.group_max_size = *rc::gen::element(3, 100);
    for (int i = 0; i < 5; ++i) {
      clients.push_back({.version = *rc::gen::element<std::int16_t>(3, 5, 9)});
      if (clients.back().version >= 5 && *rc::gen::inRange(0, 3) == 0)
        clients.back().instance = "s" + std::to_string(i);
    }
  }

  void step() {
    Client& c = clients[*rc::gen::inRange<std::size_t>(0, clients.size())];
    switch (*rc::gen::inRange(0, 13)) {
      case 0:
      case 1:
      case 2:
      case 3: start_join(c); break;
      case 4:
      case 5:
      case 6: start_sync(c); break;
      case 7:
        if (!c.id.empty()) heartbeat(c.id, c.generation, c.instance);
        break;
      case 8:
        if (!c.id.empty()) leave(c.id);
        break;
      case 9: c = {.instance = c.instance, .version = c.version}; break;  // the process restarts and forgets
      case 10: advance(milliseconds(*rc::gen::element(100, 1000, 5000, 11000, 61000))); break;
      case 11: full = !full && *rc::gen::inRange(0, 10) == 0; break;
      default:
        if (*rc::gen::inRange(0, 10) != 0) break;
        restart();  // a generation that was not stored is forgotten: its members are told to join again
        for (Client& each : clients) each.join.reset(), each.sync.reset();
        last_generation = 0;
    }
    collect();
    check();
  }

  void start_join(Client& c) {
    if (c.join) return;
    // Now and then with other metadata: a change of subscription.
    c.join = join({.member = c.id,
                   .instance = c.instance,
                   .version = c.version,
                   .topics_metadata = *rc::gen::element<std::string>("m", "m", "m", "n")});
  }
  void start_sync(Client& c) {
    if (c.sync || c.generation < 0) return;
    std::map<std::string, std::string> assignments;
    for (const auto& m : c.members) assignments[m] = m + "@" + std::to_string(c.generation);
    c.sync = sync(c.id, c.generation, assignments, c.instance);
  }

  void collect() {
    for (Client& c : clients) {
      if (c.join && answers.contains(*c.join)) on_joined(c, joined(*std::exchange(c.join, {})));
      if (c.sync && answers.contains(*c.sync)) {
        const auto given = synced(*std::exchange(c.sync, {}));
        // Whoever gets an assignment gets its own, unless a static successor inherits one.
        const std::string mine(as_text(given.assignment));
        if (!mine.empty() && !c.instance) RC_ASSERT(mine.substr(0, mine.find('@')) == c.id);
      }
    }
  }
  void on_joined(Client& c, const protocol::JoinGroupResponse& in) {
    if (in.error_code == ErrorCode::kMemberIdRequired) {
      c.id = in.member_id;
    } else if (in.error_code == ErrorCode::kNone) {
      RC_ASSERT((!in.member_id.empty() && !in.leader.empty()));
      c.id = in.member_id;
      c.generation = in.generation_id;
      c.leader = in.leader;
      c.members.clear();
      for (const auto& m : in.members) c.members.push_back(m.member_id);
      if (!in.members.empty()) RC_ASSERT(in.leader == in.member_id);
    } else if (in.error_code != ErrorCode::kRebalanceInProgress) {
      c.id.clear();
      c.generation = -1;
    }
  }

  void check() {
    const auto it = coordinator->groups().find("g");
    if (it == coordinator->groups().end()) {
      last_generation = 0;  // forgotten, with all its members: the next one begins anew
      return;
    }
    const Group& g = it->second;
    RC_ASSERT(g.generation >= last_generation);
    last_generation = g.generation;
    RC_ASSERT(((g.state == GroupState::kEmpty) == (g.members().empty() && g.state != GroupState::kPreparingRebalance)));
    RC_ASSERT((g.members().empty() || (g.leader && g.member(*g.leader) != nullptr)));
    if (g.state == GroupState::kStable || g.state == GroupState::kCompletingRebalance) {
      RC_ASSERT(g.members().size() <= static_cast<std::size_t>(config.group_max_size));
    }
    std::size_t joining = 0;
    for (const auto& [id, m] : g.members()) {
      if (m.join != kNoRequest) ++joining;
      RC_ASSERT((m.join == kNoRequest || g.state == GroupState::kPreparingRebalance));
      RC_ASSERT((m.sync == kNoRequest || g.state == GroupState::kCompletingRebalance));
      RC_ASSERT((m.wake.has_value() && *m.wake <= m.expires));
    }
    RC_ASSERT(joining == g.awaiting_join());
    // Every open request is one that a member of the group waits in.
    std::set<RequestId> parked;
    for (const auto& [id, m] : g.members()) parked.insert({m.join, m.sync});
    for (const auto& [id, request] : open) RC_ASSERT(parked.contains(id));
  }

  std::vector<Client> clients;
  std::int32_t last_generation = 0;
};

RC_GTEST_PROP(GroupInterleaving, Keeps_one_leader_growing_generations_and_answers_everybody_once, ()) {
  Interleaving group;
  const int steps = *rc::gen::inRange(1, 120);
  for (int i = 0; i < steps; ++i) group.step();
  // Left alone, everybody's session ends and every request gets its answer.
  group.full = false;
  for (int i = 0; i < 20; ++i) {
    group.advance(std::chrono::minutes(1));
    group.collect();
    group.check();
  }
  RC_ASSERT(group.open.empty());
  RC_ASSERT((group.coordinator->groups().empty() || group.group().state == GroupState::kEmpty));
}

RC_GTEST_PROP(GroupInterleaving, Settles_into_a_stable_group_once_everybody_behaves, ()) {
  Interleaving group;
  group.config.group_max_size = 100;
  const int steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) group.step();
  group.full = false;
  for (int round = 0; round < 900; ++round) {
    bool settled = true;
    for (Client& c : group.clients) {
      if (c.generation < 0 || c.id.empty()) {
        group.start_join(c);
      } else {
        const ErrorCode alive = group.heartbeat(c.id, c.generation, c.instance);
        if (alive == ErrorCode::kUnknownMemberId || alive == ErrorCode::kFencedInstanceId) {
          c.id.clear();
          c.generation = -1;
        }
        if (alive == ErrorCode::kNone) {
          group.start_sync(c);
        } else {
          group.start_join(c);
        }
      }
      group.collect();
      group.check();
      settled = settled && !c.join && !c.sync;
    }
    group.advance(milliseconds(1000));
    group.collect();
    group.check();
    const auto it = group.coordinator->groups().find("g");
    if (it == group.coordinator->groups().end()) continue;
    if (settled && it->second.state == GroupState::kStable && it->second.members().size() == 5) return;
  }
  RC_FAIL("never stable");
}

}  // namespace
}  // namespace weir::broker::testing
