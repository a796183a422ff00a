// Producer state and the record log.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "runtime/memory_file_system.h"
#include "storage/log_harness.h"
#include "storage/record_log.h"

namespace weir::storage {
namespace {

wire::BatchHeader sent(std::int64_t producer, std::int32_t sequence, std::int32_t count = 1, std::int16_t epoch = 0,
                       std::int64_t base = 0) {
  wire::BatchHeader h;
  h.base_offset = Offset(base);
  h.producer_id = ProducerId(producer);
  h.producer_epoch = epoch;
  h.base_sequence = sequence;
  h.last_offset_delta = count - 1;
  h.max_timestamp = 1000 + base;
  return h;
}

TEST(ProducerState, FollowsKafkasRules) {
  ProducerState s;
  EXPECT_EQ(s.check(sent(1, 77)).check, SequenceCheck::kOk) << "an unknown producer may begin anywhere";
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(s.check(sent(1, i * 10, 10)).check, SequenceCheck::kOk) << i;
    s.update(sent(1, i * 10, 10, 0, i * 100LL));
  }
  for (int i = 2; i < 7; ++i) {
    const auto again = s.check(sent(1, i * 10, 10));
    EXPECT_EQ(again.check, SequenceCheck::kDuplicate);
    EXPECT_EQ(again.base_offset, Offset(i * 100LL));
    EXPECT_EQ(again.last_offset, Offset(i * 100 + 9));
    EXPECT_EQ(again.timestamp, 1000 + i * 100);
  }
  EXPECT_EQ(s.check(sent(1, 10, 10)).check, SequenceCheck::kOutOfOrder) << "older than five";
  EXPECT_EQ(s.check(sent(1, 60, 5)).check, SequenceCheck::kOutOfOrder) << "not the same batch";
  EXPECT_EQ(s.check(sent(1, 80)).check, SequenceCheck::kOutOfOrder) << "a gap";
  EXPECT_EQ(s.check(sent(1, 70, 1, 1)).check, SequenceCheck::kOutOfOrder) << "a new epoch begins at 0";
  EXPECT_EQ(s.check(sent(1, 0, 1, 1)).check, SequenceCheck::kOk);
  s.update(sent(1, 0, 1, 1));
  EXPECT_EQ(s.check(sent(1, 70, 1, 0)).check, SequenceCheck::kFencedEpoch);
  EXPECT_EQ(s.check(sent(-1, -1)).check, SequenceCheck::kOk);
}

TEST(ProducerState, SequencesWrap) {
  ProducerState s;
  s.update(sent(1, INT32_MAX - 1, 2));
  EXPECT_EQ(s.check(sent(1, 0)).check, SequenceCheck::kOk);
  EXPECT_EQ(s.check(sent(1, 1)).check, SequenceCheck::kOutOfOrder);
  s.update(sent(2, INT32_MAX - 1, 4));
  EXPECT_EQ(s.check(sent(2, 2)).check, SequenceCheck::kOk);
}

TEST(ProducerState, SnapshotKeepsAllFiveAndRefusesDamage) {
  ProducerState s;
  for (int i = 0; i < 6; ++i) s.update(sent(1, i, 1, 4, i));
  s.update(sent(9, 3));
  const ByteBuffer bytes = s.encode();
  EXPECT_EQ(bytes.size(), 6 + 4 + 6 * 46u);
  const auto loaded = ProducerState::decode(bytes).value();
  EXPECT_EQ(loaded.size(), 2u);
  for (int i = 1; i < 6; ++i) EXPECT_EQ(loaded.check(sent(1, i, 1, 4)).base_offset, Offset(i));
  EXPECT_EQ(loaded.check(sent(1, 6, 1, 4)).check, SequenceCheck::kOk);
  for (Bytes i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(ProducerState::decode(ByteView(bytes).first(i))) << i;
    ByteBuffer flipped = bytes;
    flipped[i] ^= std::byte{1};
    EXPECT_FALSE(ProducerState::decode(flipped)) << i;
  }
}

TEST(ProducerState, ExpiresByItsLastBatch) {
  ProducerState s;
  s.update(sent(1, 0, 1, 0, 10));
  s.update(sent(2, 0, 1, 0, 20));
  s.expire(1015);
  EXPECT_EQ(s.size(), 1u);
  EXPECT_EQ(s.check(sent(2, 0)).check, SequenceCheck::kDuplicate);
}

TEST(Log, AnswersADuplicateWithItsFirstOffsetAfterARestartToo) {
  LogHarness h({.segment_bytes = 300});
  for (int i = 0; i < 12; ++i)
    h.append({"x", "y"}, {.timestamp = to_unix_ms(h.now), .producer = ProducerId(5), .sequence = i * 2});
  ASSERT_GT(h.log->segments(), 2u);
  const auto check = [&] {
    for (int i = 7; i < 12; ++i) {
      const auto again = h.append(batch_of({"x", "y"}, {.producer = ProducerId(5), .sequence = i * 2})).value();
      EXPECT_EQ(again.check, SequenceCheck::kDuplicate) << i;
      EXPECT_EQ(again.base_offset, Offset(i * 2LL));
    }
    EXPECT_EQ(h.append(batch_of({"x"}, {.producer = ProducerId(5), .sequence = 30})).value().check,
              SequenceCheck::kOutOfOrder);
    EXPECT_EQ(h.log->end_offset(), Offset(24));
  };
  check();
  h.killed();
  check();
  h.clean_restart();
  check();
  h.now += std::chrono::hours(25);
  h.clean_restart();
  EXPECT_EQ(h.log->producers().size(), 0u) << "producer.id.expiration.ms";
}

// ---- RecordLog

struct RecordLogHarness {
  Result<RecordLog> open() {
    seen.clear();
    return RecordLog::open(files, "/meta", [&](ByteView payload) -> Result<void> {
      seen.emplace_back(as_text(payload));
      return {};
    });
  }
  runtime::MemoryFileSystem files;
  std::vector<std::string> seen;
};

using Strings = std::vector<std::string>;

TEST(RecordLog, GivesBackWhatWasAppended) {
  RecordLogHarness h;
  {
    auto log = h.open().value();
    ASSERT_TRUE(log.append_durably(as_bytes("one")));
    ASSERT_TRUE(log.append(as_bytes("two")));
    ASSERT_TRUE(log.prepare_sync()());
    EXPECT_FALSE(log.append({}));
  }
  h.files.crash(1);
  auto log = h.open().value();
  EXPECT_EQ(h.seen, (Strings{"one", "two"}));
  EXPECT_EQ(log.records(), 2u);
  const ByteBuffer merged[] = {to_buffer(as_bytes("both"))};
  ASSERT_TRUE(log.rewrite(merged));
  ASSERT_TRUE(log.append_durably(as_bytes("three")));
  h.files.crash(2);
  ASSERT_TRUE(h.open());
  EXPECT_EQ(h.seen, (Strings{"both", "three"}));
}

TEST(RecordLog, OpensAfterACutAtEachByteAndSkipsDamage) {
  for (std::uint64_t keep = 0; keep < 8 + 3 * 11; ++keep) {
    RecordLogHarness h;
    auto log = h.open().value();
    for (const char* text : {"one", "two", "six"}) ASSERT_TRUE(log.append_durably(as_bytes(text)));
    ASSERT_TRUE(h.files.open("/meta", runtime::OpenMode::kWrite).value()->truncate(keep));
    auto again = h.open();
    ASSERT_TRUE(again) << keep;
    EXPECT_EQ(h.seen.size(), keep < 8 ? 0 : (keep - 8) / 11) << keep;
    ASSERT_TRUE(again->append_durably(as_bytes("next")));
    ASSERT_TRUE(h.open());
    EXPECT_EQ(h.seen.back(), "next");
  }
  RecordLogHarness h;
  auto log = h.open().value();
  for (const char* text : {"one", "two", "six"}) ASSERT_TRUE(log.append_durably(as_bytes(text)));
  ASSERT_TRUE(h.files.open("/meta", runtime::OpenMode::kWrite).value()->write_at(8 + 11 + 9, as_bytes("X")));
  ASSERT_TRUE(h.open());
  EXPECT_EQ(h.seen, (Strings{"one", "six"}));
  ASSERT_TRUE(h.files.replace("/meta", as_bytes("something else")));
  EXPECT_EQ(h.open().error().kind, ErrorKind::kInvalid) << "not ours: never overwritten";
}

TEST(RecordLog, AFullDiskLeavesItAsItWas) {
  RecordLogHarness h;
  auto log = h.open().value();
  ASSERT_TRUE(log.append_durably(as_bytes("one")));
  h.files.set_free_space(5);
  EXPECT_EQ(log.append(as_bytes("two")).error().kind, ErrorKind::kNoSpace);
  h.files.set_free_space({});
  ASSERT_TRUE(log.append_durably(as_bytes("three")));
  ASSERT_TRUE(h.open());
  EXPECT_EQ(h.seen, (Strings{"one", "three"}));
}

RC_GTEST_PROP(RecordLog, SyncedRecordsSurviveAnyCrash, (std::uint64_t seed)) {
  RecordLogHarness h;
  auto log = h.open().value();
  const int durable = *rc::gen::inRange(0, 20), more = *rc::gen::inRange(0, 5);
  for (int i = 0; i < durable; ++i) RC_ASSERT(log.append(as_bytes(std::to_string(i))).has_value());
  RC_ASSERT(log.prepare_sync()().has_value());
  for (int i = durable; i < durable + more; ++i) RC_ASSERT(log.append(as_bytes(std::to_string(i))).has_value());
  h.files.crash(seed);
  RC_ASSERT(h.open().has_value());
  RC_ASSERT(h.seen.size() >= static_cast<std::size_t>(durable));
  for (std::size_t i = 0; i < h.seen.size(); ++i) RC_ASSERT(h.seen[i] == std::to_string(i));
}

}  // namespace
}  // namespace weir::storage
