// `__consumer_offsets` stays small, and at no moment does a crash change what groups have committed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "broker/core_harness.h"
#include "broker/group/coordinator.h"
#include "protocol/messages/20_delete_topics.h"
#include "protocol/messages/8_offset_commit.h"
#include "protocol/messages/9_offset_fetch.h"

namespace weir::broker {
namespace {

constexpr std::uint64_t kLeast = 4000;

struct Offsets : CoreHarness {
  Offsets() : CoreHarness({"offsets.topic.num.partitions=1", "offsets.topic.segment.bytes=4000"}) {}

  RequestId commit(const std::string& group, const std::string& topic, std::int64_t offset) {
    protocol::OffsetCommitRequest request{.group_id = group, .generation_id_or_member_epoch = -1};
    request.topics.push_back({topic, {}, {{0, offset, -1, "where"}}});
    return send(request, 7);
  }
  /// -1: nothing is committed.
  std::int64_t committed(const std::string& group, const std::string& topic) {
    const auto found = core->groups().groups().find(group);
    if (found == core->groups().groups().end()) return -1;
    const auto offset = found->second.offsets.find({topic, PartitionId(0)});
    return offset == found->second.offsets.end() ? -1 : offset->second.offset.value;
  }
  storage::Log& log() { return *core->partitions().find({std::string(kOffsetsTopic), PartitionId(0)})->log; }
  std::uint64_t on_disk() {
    std::uint64_t bytes = 0;
    const auto entries = files.list("data/__consumer_offsets-0").value();
    for (const auto& entry : entries) {
      if (entry.name.ends_with(".log")) bytes += files.status("data/__consumer_offsets-0/" + entry.name)->size;
    }
    return bytes;
  }
};

TEST(OffsetsTopic, StaysSmallAndKeepsWhatIsAlive) {
  Offsets h;
  h.create("t");
  h.commit("quiet", "t", 7);
  for (int i = 0; i < 2000; ++i) {
    h.commit("busy", "t", i);
    h.run_syncs();
    ASSERT_LT(h.on_disk(), 3 * kLeast);
  }
  EXPECT_GT(h.log().start_offset(), Offset(1000));
  for (int i = 0; i < 2; ++i, h.restart()) {
    EXPECT_EQ(h.committed("quiet", "t"), 7);
    EXPECT_EQ(h.committed("busy", "t"), 1999);
  }
}

TEST(OffsetsTopic, IsNotShrunkWhenPartOfItCannotBeRead) {
  Offsets h;
  h.create("t");
  for (const char* group : {"a", "b"}) {
    h.commit(group, "t", 7);
    h.run_syncs();
  }
  h.restart();
  h.core.reset();
  h.files.kill();
  const auto spoiled = h.files.open("data/__consumer_offsets-0/00000000000000000000.log", runtime::OpenMode::kWrite);
  const ByteBuffer noise(8, std::byte{0xff});
  const ByteView piece(noise);
  ASSERT_TRUE((*spoiled)->write_at(wire::kBatchHeaderSize, std::span(&piece, 1)));
  h.start();
  EXPECT_EQ(h.committed("b", "t"), 7);
  for (int i = 0; i < 500; ++i) {
    h.commit("busy", "t", i);
    h.run_syncs();
  }
  EXPECT_EQ(h.log().start_offset(), Offset(0));
}

TEST(OffsetsTopic, IsShrunkAtTheStartToo) {
  Offsets h;
  h.create("t");
  // Nothing is dropped while nothing becomes durable.
  for (int i = 0; i < 500; ++i) h.commit("g", "t", i);
  EXPECT_GT(h.on_disk(), 3 * kLeast);
  h.kill();
  h.advance(Duration::zero());
  h.run_syncs();
  EXPECT_LT(h.on_disk(), 3 * kLeast);
  EXPECT_EQ(h.committed("g", "t"), 499);
}

TEST(OffsetsTopic, AFullDiskInTheMiddleOfASnapshotLosesNothing) {
  for (std::uint64_t room = 0; room < 1500; room += 50) {
    Offsets h;
    h.create("t");
    for (int g = 0; g < 10; ++g) h.commit(std::to_string(g), "t", 3);
    h.run_syncs();
    for (int i = 0; h.log().size() < kLeast - 200; ++i) h.commit("g", "t", i);
    h.files.set_free_space(room);
    for (int i = 1000; i < 1010; ++i) h.commit("g", "t", i);
    h.run_syncs();
    const auto reached = h.committed("g", "t");
    h.files.set_free_space(std::nullopt);
    h.crash(room);
    EXPECT_EQ(h.committed("g", "t"), reached);
    for (int g = 0; g < 10; ++g) EXPECT_EQ(h.committed(std::to_string(g), "t"), 3);
    for (int i = 0; i < 200; ++i, h.run_syncs()) h.commit("g", "t", 2000 + i);
    EXPECT_LT(h.on_disk(), 3 * kLeast);
  }
}

RC_GTEST_PROP(OffsetsTopic, NoCrashTakesBackWhatWasAnsweredNorBringsBackTheDead, ()) {
  Offsets h;
  // What a key may be after a crash: from what was answered last to what was sent last.
  std::map<std::pair<std::string, std::string>, std::pair<std::int64_t, std::int64_t>> may_be;
  std::vector<std::pair<RequestId, std::function<void()>>> unanswered;
  std::int64_t next = 0;
  const auto settle = [&] {
    std::erase_if(unanswered, [&](auto& waiting) {
      if (!h.replies.contains(waiting.first)) return false;
      waiting.second();
      return true;
    });
  };
  h.create("kept");
  h.create("gone");
  h.commit("first", "kept", 0);
  h.run_syncs();  // the topic itself is durable
  bool deleted = false;
  const int steps = *rc::gen::inRange(50, 400);
  for (int i = 0; i < steps; ++i) {
    const int what = *rc::gen::inRange(0, 100);
    if (what < 80) {
      const std::string group = std::to_string(*rc::gen::inRange(0, 3)), topic = what < 60 || deleted ? "kept" : "gone";
      const auto value = next++;
      auto& key = may_be.try_emplace({group, topic}, -1, -1).first->second;
      key.second = value;
      unanswered.emplace_back(h.commit(group, topic, value), [&key, value] { key.first = value; });
    } else if (what < 94) {
      h.run_one_sync();
    } else if (what == 94 && !deleted) {
      h.ask(protocol::DeleteTopicsRequest{.topic_names = {"gone"}, .timeout_ms = 1000}, 4);
      deleted = true;
    } else if (what < 98) {
      settle();
      unanswered.clear();
      what % 2 == 0 ? h.kill() : h.crash(*rc::gen::arbitrary<std::uint64_t>());
      for (auto& [key, range] : may_be) {
        const auto value = h.committed(key.first, key.second);
        if (deleted && key.second == "gone") {
          RC_ASSERT(value == -1);
        } else {
          RC_ASSERT(value >= range.first);
          RC_ASSERT(value <= range.second);
          range = {value, value};  // a start makes durable what it found
        }
      }
    } else {
      h.run_syncs();
    }
    settle();
  }
  h.run_syncs();
  h.commit("last", "kept", 1);
  h.run_syncs();
  RC_ASSERT(h.on_disk() < 4 * kLeast);
}

}  // namespace
}  // namespace weir::broker
