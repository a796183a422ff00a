#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "runtime/temp_directory.h"
#include "storage/log_harness.h"

namespace weir::storage {
namespace {

using Strings = std::vector<std::string>;

TEST(Log, StoresBatchesAsReceivedUnderTheNextOffsets) {
  LogHarness h;
  EXPECT_EQ(h.append({"a", "b"}), Offset(0));
  EXPECT_EQ(h.append({"c"}), Offset(2));
  EXPECT_EQ(h.log->end_offset(), Offset(3));
  const auto slice = h.log->read(Offset(0), kMiB, h.log->end_offset()).value();
  Strings values;
  const auto headers = LogHarness::batches(slice, &values);
  EXPECT_EQ(values, (Strings{"a", "b", "c"}));
  EXPECT_EQ(headers[1].base_offset, Offset(2));
  EXPECT_EQ(headers[1].leader_epoch, 3);
  EXPECT_FALSE(headers[0].log_append_time());
  EXPECT_EQ(slice.next, Offset(3));
  EXPECT_EQ(slice.payload.pieces().size(), 1u) << "one range for sendfile";
}

TEST(Log, SeveralBatchesAtOnceAndLogAppendTime) {
  LogHarness h;
  ByteBuffer two = batch_of({"a", "b"});
  const ByteBuffer second = batch_of({"c"});
  two.insert(two.end(), second.begin(), second.end());
  const auto done = h.append(two, 123456).value();
  EXPECT_EQ(done.last_offset, Offset(2));
  EXPECT_EQ(done.log_append_ms, 123456);
  for (const auto& header : LogHarness::batches(h.log->read(Offset(0), kMiB, Offset(3)).value())) {
    EXPECT_TRUE(header.log_append_time());
    EXPECT_EQ(header.max_timestamp, 123456);
  }
  EXPECT_EQ(h.append(ByteView(two).first(two.size() - 1)).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(h.append(ByteView()).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(h.log->end_offset(), Offset(3));
}

TEST(Log, NeverSplitsABatchAndGivesTheFirstOneWholeHoweverLarge) {
  LogHarness h;
  h.append({"small"});
  h.append({std::string(300'000, 'x')});
  h.append({"after"});
  const auto end = h.log->end_offset();
  EXPECT_EQ(h.log->read(Offset(0), 1024, end)->next, Offset(1)) << "the large one does not fit";
  const auto large = h.log->read(Offset(1), 1024, end).value();
  EXPECT_GT(large.payload.size(), 300'000u);
  EXPECT_EQ(large.next, Offset(2));
  EXPECT_TRUE(h.log->read(Offset(1), 1024, end, false)->payload.empty()) << "unless told otherwise";
  EXPECT_EQ(h.log->read(Offset(0), kMiB, Offset(2))->next, Offset(2)) << "nothing at or above the high watermark";
  EXPECT_TRUE(h.log->read(Offset(2), kMiB, Offset(2))->payload.empty());
  EXPECT_TRUE(h.log->read(Offset(3), kMiB, end)->payload.empty());
  EXPECT_EQ(h.log->read(Offset(4), kMiB, end).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(h.log->read(Offset(-1), kMiB, end).error().kind, ErrorKind::kNotFound);
}

RC_GTEST_PROP(LogReads, GiveEveryBatchWholeFromAnyOffset, ()) {
  LogHarness h({.segment_bytes = 900, .index_interval = *rc::gen::element<Bytes>(1, 150, 4096)});
  std::vector<Offset> batch_ends;
  for (int i = *rc::gen::inRange(1, 40); i > 0; --i) {
    h.append(Strings(*rc::gen::inRange<std::size_t>(1, 4), std::string(*rc::gen::inRange<std::size_t>(0, 200), 'x')));
    batch_ends.push_back(h.log->end_offset());
  }
  if (*rc::gen::arbitrary<bool>()) h.clean_restart();
  for (int i = 0; i < 30; ++i) {
    const Offset from(*rc::gen::inRange<std::int64_t>(0, h.log->end_offset().value));
    const Offset up_to = *rc::gen::elementOf(batch_ends);
    const Bytes max = *rc::gen::inRange<Bytes>(0, 2000);
    const auto slice = h.log->read(from, max, up_to);
    RC_ASSERT(slice.has_value());
    if (from >= up_to) {
      RC_ASSERT(slice->payload.empty());
      continue;
    }
    const auto headers = LogHarness::batches(*slice);
    RC_ASSERT(!headers.empty());
    RC_ASSERT(headers.front().base_offset <= from && from <= headers.front().last_offset());
    RC_ASSERT(headers.back().next_offset() == slice->next);
    RC_ASSERT(slice->next <= up_to);
    RC_ASSERT(slice->payload.size() <= max || headers.size() == 1u);
    // It stops only where it must: the next batch would not have fitted.
    if (slice->next < up_to) {
      const auto next = LogHarness::batches(h.log->read(slice->next, 1, up_to).value());
      RC_ASSERT(slice->payload.size() + next.front().size() > max);
    }
  }
}

TEST(Log, RollsBySizeAgeAndIndex) {
  LogHarness size({.segment_bytes = 300});
  for (int i = 0; i < 6; ++i) size.append({std::string(50, 'x')});
  EXPECT_EQ(size.log->segments(), 3u);
  LogHarness age({.segment_age = std::chrono::seconds(10)});
  age.append({"a"}, {.timestamp = 1000});
  age.append({"b"}, {.timestamp = 11'000});
  EXPECT_EQ(age.log->segments(), 1u);
  age.append({"c"}, {.timestamp = 11'001});
  EXPECT_EQ(age.log->segments(), 2u);
  LogHarness index({.index_interval = 1, .index_bytes = 40});
  for (int i = 0; i < 20; ++i) index.append({"x"}, {.timestamp = 1000 + i});
  EXPECT_GT(index.log->segments(), 4u);
  EXPECT_EQ(index.values().size(), 20u);
}

TEST(Log, DurableFollowsTheSync) {
  LogHarness h;
  EXPECT_FALSE(h.log->needs_sync());
  h.append({"a"});
  EXPECT_TRUE(h.log->needs_sync());
  const SyncPoint point = h.log->prepare_sync();
  h.append({"b"});
  EXPECT_FALSE(h.log->needs_sync()) << "one at a time";
  EXPECT_EQ(h.log->durable_offset(), Offset(0));
  h.log->synced(point, point.work());
  EXPECT_EQ(h.log->durable_offset(), Offset(1));
  EXPECT_TRUE(h.log->needs_sync());
  ASSERT_TRUE(h.sync());
  EXPECT_EQ(h.log->durable_offset(), Offset(2));
}

TEST(Log, SyncsTheDirectoryOfANewSegmentBeforeItCounts) {
  LogHarness h({.segment_bytes = 300});
  h.append({std::string(100, 'x')});
  ASSERT_TRUE(h.sync());
  const auto before = h.files.counts().directory_syncs;
  h.append({std::string(10, 'x')});
  ASSERT_TRUE(h.sync());
  EXPECT_EQ(h.files.counts().directory_syncs, before) << "only when there is a new name";
  h.append({std::string(100, 'x')});
  ASSERT_EQ(h.log->segments(), 2u);
  ASSERT_TRUE(h.sync());
  EXPECT_GT(h.files.counts().directory_syncs, before);
}

TEST(Log, AFullDiskLeavesWholeBatchesAndGoesOnWhenThereIsSpace) {
  for (std::uint64_t room = 0; room < 100; room += 7) {
    LogHarness h;
    h.append({"before"});
    h.files.set_free_space(room);
    EXPECT_EQ(h.append(batch_of({std::string(200, 'x')})).error().kind, ErrorKind::kNoSpace);
    EXPECT_EQ(h.file_size(kFirstLog), h.log->size());
    EXPECT_EQ(h.values(), Strings{"before"}) << "reads still work";
    h.files.set_free_space({});
    EXPECT_EQ(h.append({"after"}), Offset(1)) << "without a restart";
    h.files.fail_write_after(10);
    EXPECT_EQ(h.append(batch_of({"x"})).error().kind, ErrorKind::kIo);
    h.append({"end"});
    h.killed();
    EXPECT_EQ(h.values(), (Strings{"before", "after", "end"}));
    EXPECT_EQ(h.log->recovery().bytes_cut, 0u);
  }
}

TEST(Log, AFullDiskAtARollLosesNothing) {
  LogHarness h({.segment_bytes = 200, .index_interval = 1});
  for (int i = 0; i < 2; ++i) h.append({std::string(20, 'x')});
  h.files.set_free_space(4);
  EXPECT_EQ(h.append(batch_of({std::string(100, 'y')})).error().kind, ErrorKind::kNoSpace);
  h.files.set_free_space({});
  h.append({std::string(100, 'y')});
  h.append({"z"});
  EXPECT_EQ(h.values().size(), 4u);
  h.killed();
  EXPECT_EQ(h.values().size(), 4u);
}

TEST(Log, AFailedSyncMakesItReadOnlyUpToTheDurableOffset) {
  LogHarness h;
  h.append({"durable"});
  ASSERT_TRUE(h.sync());
  h.append({"lost"});
  h.files.fail_sync(1, ".log");
  EXPECT_FALSE(h.sync());
  EXPECT_TRUE(h.log->read_only());
  EXPECT_EQ(h.log->end_offset(), Offset(1));
  EXPECT_EQ(h.append(batch_of({"x"})).error().kind, ErrorKind::kClosed);
  EXPECT_EQ(h.values(), Strings{"durable"});
  EXPECT_FALSE(h.log->needs_sync());
  EXPECT_FALSE(h.log->retain(h.now + std::chrono::hours(10'000)));
  ASSERT_TRUE(h.directory->close(h.now));
  h.files.crash(1);
  h.open();
  EXPECT_EQ(h.values(), Strings{"durable"});
  EXPECT_EQ(h.append({"again"}), Offset(1)) << "a restart makes it writable";
}

TEST(Log, RetainsByTimeAndSizeInWholeSegments) {
  LogHarness h({.segment_bytes = 200, .retention_time = std::chrono::hours(1)});
  const std::int64_t now = to_unix_ms(h.now);
  for (int i = 0; i < 6; ++i) h.append({std::string(100, 'x')}, {.timestamp = now + std::int64_t{i} * 1000});
  ASSERT_EQ(h.log->segments(), 6u);
  const auto later = [&](int seconds) {
    return h.now + std::chrono::hours(1) + std::chrono::milliseconds(1) + std::chrono::seconds(seconds);
  };
  EXPECT_FALSE(h.log->retain(later(2))) << "never what is not durable";
  ASSERT_TRUE(h.sync());
  auto work = h.log->retain(later(2));
  ASSERT_TRUE(work);
  EXPECT_EQ(h.log->start_offset(), Offset(3));
  EXPECT_TRUE(h.files.exists(std::string("/data/t-0/") + kFirstLog)) << "unlinking is for another thread";
  ASSERT_TRUE(work());
  EXPECT_FALSE(h.files.exists(std::string("/data/t-0/") + kFirstLog));
  EXPECT_EQ(h.log->read(Offset(2), 100, Offset(6)).error().kind, ErrorKind::kNotFound);

  h.options.retention_bytes = 340;
  h.log->set_options(h.options);
  ASSERT_TRUE(h.log->retain(h.now)());
  EXPECT_EQ(h.log->start_offset(), Offset(4)) << "three of 169 bytes are over 340, two are not";

  ASSERT_TRUE(h.log->retain(later(60))());
  EXPECT_EQ(h.log->start_offset(), Offset(6)) << "all of it, and the end stays";
  EXPECT_EQ(h.log->segments(), 1u);
  h.files.crash(3);
  h.open();
  EXPECT_GE(h.log->start_offset(), Offset(4)) << "a removal may be forgotten";
  EXPECT_EQ(h.append({"next"}), Offset(6)) << "the end is not";
}

TEST(Log, RecordsWithoutTimestampsAreAsOldAsTheirFile) {
  LogHarness h({.segment_bytes = 100, .retention_time = std::chrono::hours(1)});
  for (int i = 0; i < 4; ++i) h.append({std::string(50, 'x')}, {.timestamp = -1});
  ASSERT_TRUE(h.sync());
  EXPECT_TRUE(h.log->retain(h.now)) << "the file system of the tests knows no times: long ago";
  EXPECT_EQ(h.log->start_offset(), Offset(4));
}

TEST(Log, DropsWhatWasConsumed) {
  LogHarness h({.segment_bytes = 200});
  for (int i = 0; i < 4; ++i) h.append({std::string(100, 'x')});
  ASSERT_TRUE(h.sync());
  ASSERT_TRUE(h.log->drop_before(Offset(2))());
  EXPECT_EQ(h.log->start_offset(), Offset(2));
  EXPECT_FALSE(h.log->drop_before(Offset(2)));
  ASSERT_TRUE(h.log->drop_before(Offset(4))());
  EXPECT_EQ(h.log->size(), 0u);
  h.killed();
  EXPECT_EQ(h.log->start_offset(), Offset(4));
}

RC_GTEST_PROP(LogTimestamps, AreFoundAsByWalkingEverything, ()) {
  LogHarness h({.segment_bytes = 1000, .index_interval = *rc::gen::element<Bytes>(1, 200, 4096)});
  std::vector<std::int64_t> timestamps;  // by offset
  for (int i = *rc::gen::inRange(0, 40); i > 0; --i) {
    const auto t = *rc::gen::inRange<std::int64_t>(0, 50);
    const auto n = *rc::gen::inRange<std::size_t>(1, 4);
    h.append(Strings(n, "value"), {.timestamp = t, .codec = *rc::gen::element(wire::Codec::kNone, wire::Codec::kLz4)});
    timestamps.insert(timestamps.end(), n, t);
  }
  if (*rc::gen::arbitrary<bool>()) h.clean_restart();
  for (std::int64_t t = -1; t < 52; ++t) {
    const auto expected = std::find_if(timestamps.begin(), timestamps.end(), [&](auto x) { return x >= t; });
    const auto hit = h.log->find_timestamp(t);
    RC_ASSERT(hit.has_value());
    RC_ASSERT(hit->has_value() == (expected != timestamps.end()));
    if (*hit) {
      RC_ASSERT((*hit)->offset.value == expected - timestamps.begin());
      RC_ASSERT((*hit)->timestamp == *expected);
    }
  }
  const auto max = h.log->find_max_timestamp();
  RC_ASSERT(max->has_value() == !timestamps.empty());
  if (*max)
    RC_ASSERT((*max)->offset.value == std::max_element(timestamps.begin(), timestamps.end()) - timestamps.begin());
}

TEST(LogDirectory, IsLockedAndNamesTheHolder) {
  LogHarness h;
  const auto second = LogDirectory::open(h.files, "/data");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kExists);
  EXPECT_NE(second.error().message.find("/data is in use by process"), std::string::npos);
}

TEST(LogDirectory, FindsItsPartitionsAndForgetsRemovedOnes) {
  LogHarness h;
  for (const char* topic : {"b-1", "a.x_y"}) ASSERT_TRUE(h.directory->open_log({topic, PartitionId(12)}, {}, h.now));
  auto work = h.directory->remove_log({"t", PartitionId(0)}, std::nullopt);
  ASSERT_TRUE(work);
  EXPECT_FALSE(h.files.exists("/data/t-0")) << "the name is free at once";
  ASSERT_TRUE(h.directory->open_log({"t", PartitionId(0)}, {}, h.now));
  ASSERT_TRUE((*work)());
  ASSERT_TRUE(h.directory->remove_log({"t", PartitionId(0)}, std::nullopt)) << "and is killed before it unlinks";
  h.log.reset();
  h.directory.reset();
  const auto again = LogDirectory::open(h.files, "/data").value();
  ASSERT_TRUE(again->settle_removals([](const wire::Uuid&) { return ""; }));
  EXPECT_EQ(again->found(), (std::vector<TopicPartition>{{"a.x_y", PartitionId(12)}, {"b-1", PartitionId(12)}}));
  EXPECT_EQ(h.files.list("/data")->size(), 3u) << "lock and two partitions";
  for (const char* name : {"x", "-1", "x-", "x-y", "x-1.0a-delete"}) EXPECT_FALSE(parse_directory_name(name)) << name;
}

TEST(LogDirectory, ASyncThatIsOutWhenItsPartitionIsRemovedDoesNotFail) {
  LogHarness h;
  h.append({"x"});
  const SyncPoint point = h.log->prepare_sync();
  ASSERT_TRUE(h.directory->remove_log({"t", PartitionId(0)}, std::nullopt));
  const auto outcome = point.work();
  EXPECT_TRUE(outcome) << outcome.error().message;
  h.log->synced(point, outcome);
}

TEST(LogDirectory, RemovesAPartitionWithTheLongestName) {
  runtime::MemoryFileSystem files;
  const TopicPartition longest{std::string(249, 'x'), PartitionId(12)};
  const wire::Uuid id = wire::random_uuid();
  {
    auto directory = LogDirectory::open(files, "/data").value();
    ASSERT_TRUE(directory->open_log(longest, {}, {}));
    ASSERT_TRUE(directory->remove_log(longest, id));  // and no time to unlink
    const auto entries = files.list("/data").value();
    for (const auto& entry : entries) EXPECT_LE(entry.name.size(), 255u);
  }
  const auto again = LogDirectory::open(files, "/data").value();
  EXPECT_TRUE(again->found().empty());
  ASSERT_TRUE(again->settle_removals([&](const wire::Uuid& topic) { return topic == id ? longest.topic : ""; }));
  EXPECT_EQ(again->found(), std::vector{longest}) << "its topic was not deleted after all";
}

TEST(LogDirectory, WorkForADeletedTopicLeavesItsSuccessorAlone) {
  LogHarness h({.segment_bytes = 100});
  for (int i = 0; i < 4; ++i) h.append({std::string(50, 'x')});
  ASSERT_TRUE(h.sync());
  const DiskWork retention = h.log->drop_before(Offset(3));
  ASSERT_TRUE(h.directory->remove_log({"t", PartitionId(0)}, std::nullopt));
  h.log = h.directory->open_log({"t", PartitionId(0)}, h.options, h.now).value();
  h.append({"new"});
  (void)retention();
  h.killed();
  EXPECT_EQ(h.values(), std::vector<std::string>{"new"});
}

TEST(LogDirectory, ATopicMadeAnewDoesNotTakeTheOldRecoveryPoint) {
  LogHarness h;
  for (int i = 0; i < 10; ++i) h.append({"old"});
  h.clean_restart();
  EXPECT_FALSE(h.directory->checkpoint_due());
  ASSERT_TRUE(h.directory->remove_log({"t", PartitionId(0)}, std::nullopt));
  EXPECT_TRUE(h.directory->checkpoint_due());
  h.log = h.directory->open_log({"t", PartitionId(0)}, h.options, h.now).value();
  for (int i = 0; i < 3; ++i) h.append({"new"});
  std::array<std::byte, 1> byte;  // the disk did not get the last one whole
  ASSERT_TRUE(h.file(kFirstLog)->read_at(h.file_size(kFirstLog) - 2, byte));
  byte[0] ^= std::byte{1};
  ASSERT_TRUE(h.file(kFirstLog)->write_at(h.file_size(kFirstLog) - 2, byte));
  h.killed();
  EXPECT_EQ(h.values(), std::vector<std::string>(2, "new"));
}

TEST(LogDirectory, ARecoveryPointWithoutItsDirectoryIsForgotten) {
  runtime::MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("/data/kept-0"));
  const runtime::Path points = "/data/recovery-point-offset-checkpoint";
  ASSERT_TRUE(files.replace(points, as_bytes("0\n2\ngone 0 100\nkept 0 7\n")));
  const auto directory = LogDirectory::open(files, "/data").value();
  EXPECT_FALSE(directory->checkpoint_due());
  ASSERT_TRUE(directory->settle_removals([](const wire::Uuid&) { return ""; }));
  EXPECT_TRUE(directory->checkpoint_due());
  ASSERT_TRUE(directory->checkpoint()());
  EXPECT_EQ(as_text(files.read_all(points, kMiB).value()), "0\n1\nkept 0 7\n");
}

TEST(LogDirectory, ManyPartitionsNeedFewOpenFiles) {
  runtime::MemoryFileSystem files;
  auto directory = LogDirectory::open(files, "/data", 8).value();
  std::vector<std::shared_ptr<Log>> logs;
  for (int i = 0; i < 100; ++i) logs.push_back(directory->open_log({"t", PartitionId(i)}, {}, WallTime()).value());
  EXPECT_LE(files.open_files(), 8u) << "new and never written";
  const auto batch = batch_of({"x"});
  for (const auto& log : logs) {
    ASSERT_TRUE(log->append({.batches = batch}, WallTime()));
    const auto point = log->prepare_sync();
    log->synced(point, point.work());
  }
  EXPECT_LE(files.open_files(), 8u);
  for (const auto& log : logs) EXPECT_EQ(log->read(Offset(0), kMiB, Offset(1))->next, Offset(1));
}

TEST(LogDirectory, WorksOnRealFiles) {
  runtime::TempDirectory temporary;
  LogOptions options{.segment_bytes = 10'000, .index_interval = 500};
  const TopicPartition partition{"logs", PartitionId(0)};
  {
    auto directory = LogDirectory::open(runtime::posix_file_system(), temporary.path()).value();
    auto log = directory->open_log(partition, options, WallTime()).value();
    for (int i = 0; i < 200; ++i) {
      const auto batch = batch_of({std::to_string(i), std::string(100, 'x')}, {.timestamp = 1000 + i});
      ASSERT_TRUE(log->append({.batches = batch}, WallTime()));
    }
    EXPECT_EQ(LogDirectory::open(runtime::posix_file_system(), temporary.path()).error().kind, ErrorKind::kExists);
    ASSERT_TRUE(directory->close(WallTime()));
  }
  auto directory = LogDirectory::open(runtime::posix_file_system(), temporary.path()).value();
  auto log = directory->open_log(directory->found().at(0), options, WallTime()).value();
  EXPECT_EQ(log->end_offset(), Offset(400));
  EXPECT_LE(log->recovery().bytes_scanned, 1000u) << "only from the last indexed batch";
  EXPECT_EQ(log->find_timestamp(1150).value()->offset, Offset(300));
  auto slice = log->read(Offset(301), 2000, Offset(400)).value();
  ASSERT_FALSE(slice.payload.empty());
  EXPECT_GE(std::get<FileRange>(slice.payload.pieces()[0]).file->descriptor(), 0);
  slice = {};
  log.reset();

  // A deletion that did not last, and a topic of the same name that did not either.
  const wire::Uuid topic = wire::random_uuid();
  ASSERT_TRUE(directory->remove_log(partition, topic));
  ASSERT_TRUE(directory->open_log(partition, options, WallTime()).value()->append({.batches = batch_of({"x"})}, {}));
  directory.reset();
  directory = LogDirectory::open(runtime::posix_file_system(), temporary.path()).value();
  const auto name_of = [&](const wire::Uuid& id) { return id == topic ? partition.topic : ""; };
  ASSERT_TRUE(directory->settle_removals(name_of));
  EXPECT_EQ(directory->found(), std::vector{partition});
  log = directory->open_log(partition, options, WallTime()).value();
  EXPECT_EQ(log->end_offset(), Offset(400));
}

}  // namespace
}  // namespace weir::storage
