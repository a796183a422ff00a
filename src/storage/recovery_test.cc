// Crashes, torn tails and damaged indexes: what was acknowledged after a sync is there, and the log always opens.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <map>

#include "storage/log_harness.h"
#include "storage/producer_state.h"

namespace weir::storage {
namespace {

using Strings = std::vector<std::string>;

/// Fifty batches of one record each in one segment, stopped in order, then ten more that no checkpoint knows.
struct Stored : LogHarness {
  Stored() : LogHarness({.index_interval = 200}) {
    for (int i = 0; i < 50; ++i) append({std::to_string(i)}, {.timestamp = 1000 + i});
    clean_restart();
    for (int i = 50; i < 60; ++i) append({std::to_string(i)}, {.timestamp = 1000 + i});
  }
};
Strings numbers(int n) {
  Strings s;
  for (int i = 0; i < n; ++i) s.push_back(std::to_string(i));
  return s;
}

TEST(Recovery, TruncatedAtEachByteOfTheLastBatchItEndsAtTheLastWholeOne) {
  const std::uint64_t size = Stored().file_size(kFirstLog);
  const std::uint64_t last = batch_of({"59"}).size();
  for (std::uint64_t cut = 1; cut <= last; ++cut) {
    Stored h;
    ASSERT_TRUE(h.file(kFirstLog)->truncate(size - cut));
    h.killed();
    ASSERT_EQ(h.values(), numbers(59)) << cut;
    EXPECT_EQ(h.log->recovery().bytes_cut, last - cut);
    EXPECT_EQ(h.append({"again"}), Offset(59));
    EXPECT_EQ(h.log->find_timestamp(1058).value()->offset, Offset(58));
  }
}

TEST(Recovery, AFlippedByteAfterTheRecoveryPointEndsTheLogThere) {
  const auto size = Stored().file_size(kFirstLog);
  const std::uint64_t one = batch_of({"55"}).size();
  for (std::uint64_t at = size - 5 * one; at < size - 4 * one; ++at) {
    Stored h;
    std::array<std::byte, 1> byte;
    ASSERT_TRUE(h.file(kFirstLog)->read_at(at, byte));
    byte[0] ^= std::byte{0x10};
    ASSERT_TRUE(h.file(kFirstLog)->write_at(at, byte));
    h.killed();
    // Base offset (but for a jump backwards) and leader epoch are outside the CRC, as in Kafka.
    const auto in_batch = at - (size - 5 * one);
    if (in_batch < 8 || (in_batch >= 12 && in_batch < 16)) {
      EXPECT_GE(h.log->end_offset(), Offset(55));
    } else {
      ASSERT_EQ(h.values(), numbers(55)) << in_batch;
    }
  }
}

TEST(Recovery, GarbageSizesAndZerosAtTheEndAreCutOff) {
  for (const std::string& tail : {std::string(500, '\0'), std::string(500, '\xff'),
                                  std::string("GET / HTTP/1.1\r\n\r\n") + std::string(100, 'x')}) {
    Stored h;
    ASSERT_TRUE(h.file(kFirstLog)->append(as_bytes(tail)));
    h.killed();
    EXPECT_EQ(h.values(), numbers(60));
    EXPECT_EQ(h.log->recovery().bytes_cut, tail.size());
  }
}

TEST(Recovery, AZeroedTornOrMissingIndexIsRebuilt) {
  for (const char* name : {kFirstIndex, kFirstTimeIndex}) {
    for (const int damage : {0, 1, 2, 3}) {
      Stored h;
      const std::uint64_t size = h.file_size(name);
      ASSERT_GT(size, 50u);
      if (damage == 0) {
        ASSERT_TRUE(h.file(name)->write_at(0, ByteBuffer(size)));
      }
      if (damage == 1) {
        ASSERT_TRUE(h.file(name)->truncate(size - 3));
      }
      if (damage == 2) {
        ASSERT_TRUE(h.files.remove(std::string("/data/t-0/") + name));
      }
      if (damage == 3) {
        ASSERT_TRUE(h.file(name)->write_at(size / 2, ByteBuffer(size - size / 2, std::byte{0x7f})));
      }
      h.killed();
      ASSERT_EQ(h.values(), numbers(60)) << name << damage;
      for (int i = 0; i < 60; ++i) {
        ASSERT_EQ(LogHarness::batches(h.log->read(Offset(i), 1, Offset(60)).value()).front().base_offset, Offset(i));
        ASSERT_EQ(h.log->find_timestamp(1000 + i).value()->offset, Offset(i));
      }
      h.clean_restart();
      EXPECT_EQ(h.file_size(name) % (name == kFirstIndex ? 8 : 12), 0u);
      EXPECT_GE(h.file_size(name), size) << "written anew";
    }
  }
}

TEST(Recovery, ADamagedIndexOfAnOldSegmentIsNoticedWhenUsedAndDeletesNothing) {
  LogHarness h({.segment_bytes = 2000, .index_interval = 100, .retention_time = std::chrono::hours(1)});
  const std::int64_t now = to_unix_ms(h.now);
  for (int i = 0; i < 60; ++i) h.append({std::to_string(i)}, {.timestamp = now + i});
  h.clean_restart();
  ASSERT_GT(h.log->segments(), 2u);
  for (const char* name : {kFirstIndex, kFirstTimeIndex}) {
    const auto size = h.file_size(name);
    ASSERT_TRUE(h.file(name)->write_at(0, ByteBuffer(size, name == kFirstIndex ? std::byte{1} : std::byte{0})));
  }
  h.killed();
  EXPECT_FALSE(h.log->retain(h.now)) << "a zeroed time index is no reason to delete";
  EXPECT_EQ(h.values(300), numbers(60));
  EXPECT_EQ(h.log->find_timestamp(now + 5).value()->offset, Offset(5));
}

TEST(Recovery, IndexesRebuiltForOlderSegmentsAreKept) {
  LogHarness h({.segment_bytes = 1000, .index_interval = 100});
  for (int i = 0; i < 40; ++i) h.append({std::to_string(i)}, {.timestamp = 1000 + i});
  ASSERT_GT(h.log->segments(), 2u);
  ASSERT_TRUE(h.files.remove("/data/t-0/" + std::string(kFirstIndex)));
  ASSERT_TRUE(h.files.remove("/data/t-0/" + std::string(kFirstTimeIndex)));
  h.killed();
  h.clean_restart();
  EXPECT_GT(h.file_size(kFirstIndex), 0u);
  EXPECT_GT(h.file_size(kFirstTimeIndex), 0u);
  EXPECT_EQ(h.log->find_timestamp(1003).value()->offset, Offset(3));
}

TEST(Recovery, OnlyTheActiveSegmentIsScanned) {
  LogHarness h({.segment_bytes = 10'000, .index_interval = 1000});
  const auto fill = [&] {
    for (int i = 0; i < 500; ++i) h.append({std::string(100, 'x')});
  };
  fill();
  ASSERT_TRUE(h.log->checkpoint_wanted());
  ASSERT_TRUE(h.sync());
  EXPECT_TRUE(h.directory->checkpoint_due());
  h.checkpoint();
  EXPECT_FALSE(h.directory->checkpoint_due());
  h.append({"after"});
  ASSERT_TRUE(h.sync());
  EXPECT_FALSE(h.directory->checkpoint_due()) << "not at each sync";
  h.files.kill();
  const auto before = h.files.counts().bytes_read;
  h.open();
  EXPECT_EQ(h.log->recovery().segments_scanned, 1u);
  EXPECT_LT(h.log->recovery().bytes_scanned, 1500u) << "from the recovery point, not from the segment's start";
  EXPECT_LT(h.files.counts().bytes_read - before, 30'000u);
  EXPECT_EQ(h.log->end_offset(), Offset(501));
}

TEST(Recovery, ACheckpointIsWantedAfterTheAgreedBytes) {
  LogHarness h({.checkpoint_bytes = 1000});
  while (!h.log->checkpoint_wanted()) h.append({std::string(100, 'x')});
  EXPECT_GE(h.log->size(), 1000u);
  ASSERT_TRUE(h.sync());
  EXPECT_EQ(h.log->recovery_point(), h.log->end_offset());
  EXPECT_FALSE(h.log->checkpoint_wanted());
}

TEST(Recovery, AGarbledCheckpointOnlyCostsAScan) {
  for (const char* text : {"", "0\n1\nt 0 99999\n", "x", "0\n1\nt 0 -5\n", "0\n1\nt zero 5\n"}) {
    Stored h;
    ASSERT_TRUE(h.files.replace("/data/recovery-point-offset-checkpoint", as_bytes(text)));
    h.killed();
    EXPECT_EQ(h.values(), numbers(60)) << text;
  }
}

TEST(Recovery, LeftoversAndOrphansDoNotStayInTheWay) {
  Stored h;
  for (const char* name : {"00000000000000000099.index", "00000000000000000099.snapshot",
                           "00000000000000000000.log.deleted", "00000000000000000007.log.swap"})
    ASSERT_TRUE(h.files.replace(std::string("/data/t-0/") + name, as_bytes("x")));
  h.killed();
  EXPECT_EQ(h.values(), numbers(60));
  const auto left = h.files.list("/data/t-0").value();
  for (const auto& entry : left) EXPECT_EQ(entry.name.find("99"), std::string::npos) << entry.name;
}

TEST(Recovery, AHoleLeftByAnUnfinishedRemovalIsReadOver) {
  LogHarness h({.segment_bytes = 200});
  for (int i = 0; i < 4; ++i) h.append({std::string(100, 'x')});
  h.clean_restart();
  for (const char* extension : {"log", "index", "timeindex", "snapshot"})
    ASSERT_TRUE(h.files.remove(std::string("/data/t-0/00000000000000000001.") + extension));
  h.killed();
  EXPECT_EQ(h.log->start_offset(), Offset(0));
  const auto slice = h.log->read(Offset(1), kMiB, Offset(4)).value();
  EXPECT_EQ(LogHarness::batches(slice).front().base_offset, Offset(2));
  EXPECT_EQ(slice.next, Offset(4));
}

TEST(Recovery, ASnapshotOfBatchesThatWereLostStaysGone) {
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    LogHarness h;
    h.append({"0"}, {.timestamp = to_unix_ms(h.now)});
    ASSERT_TRUE(h.sync());
    // A crash left this of a roll at 4, and nothing else of what came after the first record.
    ASSERT_TRUE(h.files.replace("/data/t-0/00000000000000000004.snapshot", ProducerState().encode()));
    ASSERT_TRUE(h.files.sync_directory("/data/t-0"));
    h.killed();
    const ByteBuffer sent = batch_of({"1", "2", "3"}, {.timestamp = to_unix_ms(h.now), .producer = ProducerId(1)});
    ASSERT_TRUE(h.append(sent));
    h.files.crash(seed);
    h.open();
    if (h.log->end_offset() == Offset(1)) continue;
    EXPECT_EQ(h.append(sent)->check, SequenceCheck::kDuplicate) << seed;
  }
}

TEST(Recovery, WhatFollowsLostBatchesIsCutOff) {
  LogHarness h({.segment_bytes = 300});
  h.append({"0"});
  ASSERT_TRUE(h.sync());
  for (int i = 1; i < 9; ++i) h.append({std::to_string(i)});
  ASSERT_EQ(h.log->segments(), 3u);
  ASSERT_TRUE(h.file("00000000000000000004.log")->truncate(2 * batch_of({"4"}).size()));  // the disk took the next one
  h.killed();
  EXPECT_EQ(h.values(), numbers(6));
  EXPECT_EQ(h.append({"again"}), Offset(6));
}

TEST(Recovery, ProducersAreRememberedWhenAllTheyWroteWasRemoved) {
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    LogHarness h({.segment_bytes = 300});
    const Produced p = {.timestamp = to_unix_ms(h.now), .producer = ProducerId(1)};
    h.append({"mine"}, p);
    for (int i = 0; i < 8; ++i) h.append({std::to_string(i)});
    ASSERT_TRUE(h.sync());
    if (seed % 2 == 0) {  // as after a start that found no snapshot whole
      const auto entries = h.files.list("/data/t-0").value();
      for (const auto& entry : entries) {
        if (entry.name.ends_with("snapshot")) {
          ASSERT_TRUE(h.files.remove("/data/t-0/" + entry.name));
        }
      }
      h.killed();
    }
    auto work = h.log->drop_before(seed % 4 < 2 ? h.log->end_offset() : Offset(6));
    ASSERT_TRUE(work);
    ASSERT_TRUE(work());
    h.files.crash(seed);
    h.open();
    EXPECT_EQ(h.append(batch_of({"mine"}, p))->check, SequenceCheck::kDuplicate) << seed;
  }
}

/// What should be in the log, kept by a test that runs random operations against it.
struct Model {
  std::deque<std::string> values;  // from `start`
  std::int64_t start = 0;
  std::int64_t durable = 0;
  struct Sent {
    std::int64_t base = 0;
    std::int32_t sequence = 0, count = 0;
  };
  std::map<std::int64_t, std::deque<Sent>> sent;  // by producer
  std::map<std::int64_t, std::int32_t> next_sequence;
  std::int64_t end() const { return start + static_cast<std::int64_t>(values.size()); }
};

/// After a crash: everything that was durable is there, in order, and nothing that was never written.
void compare(LogHarness& h, Model& m) {
  RC_ASSERT(h.log->end_offset().value >= m.durable);
  RC_ASSERT(h.log->end_offset().value <= m.end());
  RC_ASSERT(h.log->start_offset().value <= m.start);  // a removal may be forgotten, a record may not
  m.values.resize(static_cast<std::size_t>(h.log->end_offset().value - m.start));
  m.durable = h.log->durable_offset().value;
  RC_ASSERT(m.durable == m.end());
  auto values = h.values(400);
  values.erase(values.begin(), values.begin() + (m.start - h.log->start_offset().value));
  RC_ASSERT(values == Strings(m.values.begin(), m.values.end()));
  m.start = h.log->start_offset().value;
  const auto all = h.values(1000);
  m.values.assign(all.begin(), all.end());
  for (auto& [producer, batches] : m.sent) {
    while (!batches.empty() && batches.back().base >= m.end()) batches.pop_back();
    m.next_sequence[producer] = batches.empty() ? 0 : batches.back().sequence + batches.back().count;
  }
}

/// Each of a producer's last five batches, sent again, is answered with its first offset and not stored twice.
void resend(LogHarness& h, const Model& m) {
  for (const auto& [producer, batches] : m.sent) {
    const std::size_t from = batches.size() > 5 ? batches.size() - 5 : 0;
    for (std::size_t i = from; i < batches.size(); ++i) {
      const auto& b = batches[i];
      const auto again = h.append(batch_of(Strings(static_cast<std::size_t>(b.count), "again"),
                                           {.producer = ProducerId(producer), .sequence = b.sequence}));
      RC_ASSERT(again.has_value());
      RC_ASSERT(again->check == SequenceCheck::kDuplicate);
      RC_ASSERT(again->base_offset.value == b.base);
    }
  }
}

RC_GTEST_PROP(Recovery, WhatWasSyncedSurvivesCrashesAtAnyMoment, ()) {
  LogHarness h({.segment_bytes = 700,
                .index_interval = *rc::gen::element<Bytes>(1, 200, 4096),
                .retention_time = std::nullopt,
                .checkpoint_bytes = 900});
  Model m;
  std::deque<DiskWork> removals;  // done in order, some time later
  int serial = 0;
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps; ++step) {
    const int what = *rc::gen::inRange(0, 20);
    if (what < 10) {
      Strings values;
      for (int n = *rc::gen::inRange(1, 4); n > 0; --n)
        values.push_back(std::to_string(serial++) + std::string(*rc::gen::inRange<std::size_t>(0, 90), '.'));
      const std::int64_t producer = *rc::gen::inRange(0, 3);  // 0: none
      Produced p;
      if (producer > 0)
        p = {.timestamp = to_unix_ms(h.now), .producer = ProducerId(producer), .sequence = m.next_sequence[producer]};
      const auto done = h.append(batch_of(values, p)).value();
      RC_ASSERT(done.check == SequenceCheck::kOk);
      RC_ASSERT(done.base_offset.value == m.end());
      if (producer > 0) {
        m.sent[producer].push_back({m.end(), p.sequence, static_cast<std::int32_t>(values.size())});
        m.next_sequence[producer] += static_cast<std::int32_t>(values.size());
      }
      m.values.insert(m.values.end(), values.begin(), values.end());
    } else if (what < 14) {
      if (h.log->needs_sync()) {
        const SyncPoint point = h.log->prepare_sync();
        if (*rc::gen::arbitrary<bool>()) {  // appends go on while the disk works
          m.values.push_back(std::to_string(serial++));
          h.append({m.values.back()});
        }
        h.log->synced(point, point.work());
        m.durable = point.end.value;
      }
    } else if (what < 15) {
      if (h.directory->checkpoint_due()) h.checkpoint();
      for (int n = *rc::gen::inRange(0, 3); n > 0 && !removals.empty(); --n) {
        RC_ASSERT(removals.front()().has_value());
        removals.pop_front();
      }
    } else if (what < 16) {
      const std::int64_t upto = *rc::gen::inRange<std::int64_t>(m.start, m.end() + 1);
      if (auto work = h.log->drop_before(Offset(upto))) {
        const auto dropped = h.log->start_offset().value - m.start;
        m.values.erase(m.values.begin(), m.values.begin() + dropped);
        m.start += dropped;
        removals.push_back(std::move(work));
      }
    } else if (what < 18) {
      removals.clear();
      h.files.crash(*rc::gen::arbitrary<std::uint64_t>());
      h.open();
      compare(h, m);
    } else if (what < 19) {
      removals.clear();
      const auto end = m.end();
      h.killed();
      compare(h, m);
      RC_ASSERT(m.end() == end);  // a killed process loses nothing
      resend(h, m);
    } else {
      removals.clear();
      h.clean_restart();
      m.durable = m.end();
      compare(h, m);
      RC_ASSERT(h.log->recovery().bytes_cut == 0u);
      resend(h, m);
    }
  }
  resend(h, m);
}

}  // namespace
}  // namespace weir::storage
