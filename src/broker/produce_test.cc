// What Produce makes of a batch: what is believed of its header, and what it may cost.
#include <gtest/gtest.h>

#include <map>

#include "broker/core_harness.h"
#include "protocol/messages/2_list_offsets.h"
#include "wire/crc32c.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;

constexpr std::int64_t kMaxTimestamp = -3;

/// Offset and timestamp that ListOffsets answers.
std::pair<std::int64_t, std::int64_t> listed(CoreHarness& h, const std::string& topic, std::int64_t timestamp) {
  protocol::ListOffsetsRequest request{.replica_id = -1};
  request.topics.push_back({.name = topic});
  request.topics[0].partitions.push_back({.partition_index = 0, .timestamp = timestamp});
  const auto response = h.ask(request, 7);
  const auto& partition = response.topics.at(0).partitions.at(0);
  return {partition.offset, partition.timestamp};
}

wire::BatchHeader stored(CoreHarness& h, const std::string& topic, std::int64_t offset) {
  const auto response = h.ask(h.fetch(topic, offset), 11);
  const auto bytes = h.only(response).records.value().flatten().value();
  const auto header = wire::check_batch(bytes);
  EXPECT_TRUE(header) << header.error().message;
  return *header;
}

/// Two records, the first one the younger, whose header says `claim`.
ByteBuffer claiming(const CoreHarness& h, std::int64_t claim, wire::BatchOptions options = {}) {
  wire::BatchBuilder builder(options);
  builder.add(h.now_ms(), as_bytes("k"), as_bytes("young"));
  builder.add(h.now_ms() - 1000, as_bytes("k"), as_bytes("old"));
  ByteBuffer batch = builder.build();
  wire::set_create_time(batch, claim);
  return batch;
}

TEST(Produce, TheLargestTimestampIsThatOfTheRecordsWhateverTheHeaderClaims) {
  for (const std::int64_t off : {-5000, 5000}) {
    SCOPED_TRACE(off);
    CoreHarness h;
    h.create("t");
    const std::int64_t now = h.now_ms();
    ASSERT_EQ(h.only(h.ask(h.produce("t", claiming(h, now + off)), 9)).error_code, ErrorCode::kNone);
    const auto look = [&] {
      EXPECT_EQ(stored(h, "t", 0).max_timestamp, now);
      EXPECT_EQ(listed(h, "t", kMaxTimestamp), (std::pair<std::int64_t, std::int64_t>(0, now)));
      EXPECT_EQ(listed(h, "t", now - 2000), (std::pair<std::int64_t, std::int64_t>(0, now)));
      EXPECT_EQ(listed(h, "t", now + 1), (std::pair<std::int64_t, std::int64_t>(-1, -1)));
    };
    look();
    h.restart();  // the time index says the same
    look();
  }
}

TEST(Produce, AnHonestBatchIsStoredAsItCame) {
  CoreHarness h;
  h.create("t");
  const ByteBuffer batch = claiming(h, h.now_ms());
  ASSERT_EQ(h.only(h.ask(h.produce("t", batch), 9)).error_code, ErrorCode::kNone);
  EXPECT_EQ(stored(h, "t", 0).crc, wire::check_batch(batch)->crc);
}

TEST(Produce, ACompressedBatchIsBelievedUnlessItsTopicIsCompacted) {
  CoreHarness h;
  h.create("t");
  h.create("c", 1, {{.name = "cleanup.policy", .value = "compact"}});
  const std::int64_t now = h.now_ms();
  for (const char* topic : {"t", "c"}) {
    const auto batch = claiming(h, now + 5000, {.codec = wire::Codec::kLz4});
    ASSERT_EQ(h.only(h.ask(h.produce(topic, batch), 9)).error_code, ErrorCode::kNone);
  }
  EXPECT_EQ(stored(h, "t", 0).max_timestamp, now + 5000);
  EXPECT_EQ(stored(h, "c", 0).max_timestamp, now);
}

TEST(Produce, ATopicOfCreateTimeStoresNoLogAppendTime) {
  CoreHarness h;
  h.create("t");
  const std::int64_t now = h.now_ms();
  ByteBuffer batch = claiming(h, now);
  wire::set_log_append_time(batch, now + 5000);
  ASSERT_EQ(h.only(h.ask(h.produce("t", batch), 9)).error_code, ErrorCode::kNone);
  EXPECT_FALSE(stored(h, "t", 0).log_append_time());
  EXPECT_EQ(stored(h, "t", 0).max_timestamp, now);
}

TEST(Produce, AProducerMayNotSayLogAppendTime) {
  CoreHarness h;
  h.create("c");
  h.create("l", 1, {{.name = "message.timestamp.type", .value = "LogAppendTime"}});
  ByteBuffer batch = claiming(h, h.now_ms());
  wire::set_log_append_time(batch, h.now_ms());
  EXPECT_EQ(h.only(h.ask(h.produce("l", batch), 9)).error_code, ErrorCode::kInvalidTimestamp);
  wire::set_log_append_time(batch, -1);
  EXPECT_EQ(h.only(h.ask(h.produce("c", batch), 9)).error_code, ErrorCode::kInvalidTimestamp)
      << "without a timestamp to look at, the type is";
  EXPECT_EQ(h.only(h.ask(h.produce("l", claiming(h, h.now_ms())), 9)).error_code, ErrorCode::kNone);
}

TEST(Produce, AHeaderThatContradictsItselfIsAnInvalidRecord) {
  // Offset in the batch, bytes that go there: what Apache Kafka 4.3.1 answers to the same was looked up.
  struct Change {
    const char* what;
    std::size_t at;
    std::vector<int> bytes;
    ErrorCode error = ErrorCode::kInvalidRecord;
  };
  const std::vector<Change> changes{
      {"more records than offsets", 57, {0, 0, 0, 3}},
      {"fewer records than offsets", 57, {0, 0, 0, 1}},
      {"more records than there are", 23, {0, 0, 0, 2}},
      {"a negative count", 57, {0xff, 0xff, 0xff, 0xff}},
      {"a negative last offset delta", 23, {0xff, 0xff, 0xff, 0xff}},
      {"a negative base offset", 0, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
      {"a base offset", 7, {5}},
      {"a producer id without an epoch", 43, {0, 0, 0, 0, 0, 0, 0, 1}},
      {"a format there is not", 16, {3}, ErrorCode::kCorruptMessage},
      {"no codec", 22, {5}, ErrorCode::kUnsupportedCompressionType},
  };
  CoreHarness h;
  h.create("t");
  for (const Change& change : changes) {
    SCOPED_TRACE(change.what);
    ByteBuffer batch = h.batch({"a", "b"});
    for (std::size_t i = 0; i < change.bytes.size(); ++i)
      batch[change.at + i] = static_cast<std::byte>(change.bytes[i]);
    const std::uint32_t crc = wire::crc32c(ByteView(batch).subspan(21));
    for (std::size_t i = 0; i < 4; ++i) batch[17 + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    EXPECT_EQ(h.only(h.ask(h.produce("t", batch), 9)).error_code, change.error);
  }
}

TEST(Produce, EveryRecordsTimestampMustBeInRange) {
  CoreHarness h;
  h.create("t", 1, {{.name = "message.timestamp.before.max.ms", .value = "500"}});
  h.create("u", 1, {{.name = "message.timestamp.after.max.ms", .value = "500"}});
  const std::int64_t now = h.now_ms();
  EXPECT_EQ(h.only(h.ask(h.produce("t", claiming(h, now)), 9)).error_code, ErrorCode::kInvalidTimestamp)
      << "the second record is too old, the first one and the header are not";
  wire::BatchBuilder early;
  early.add(now, as_bytes("k"), as_bytes("x"));
  early.add(now + 1000, as_bytes("k"), as_bytes("x"));
  ByteBuffer batch = early.build();
  wire::set_create_time(batch, now);
  EXPECT_EQ(h.only(h.ask(h.produce("u", batch), 9)).error_code, ErrorCode::kInvalidTimestamp);
}

/// A batch of one record of `plain` zeros.
ByteBuffer bomb(const CoreHarness& h, Bytes plain) {
  wire::BatchBuilder builder({.codec = wire::Codec::kZstd});
  builder.add(h.now_ms(), as_bytes("k"), ByteBuffer(plain));
  return builder.build();
}

TEST(Produce, OneRequestDecompressesNoMoreThanOneBatchMay) {
  CoreHarness h;
  h.create("c", 4, {{.name = "cleanup.policy", .value = "compact"}});
  h.create("t", 1);
  protocol::ProduceRequest request{.acks = -1, .timeout_ms = 1000};
  request.topic_data.push_back({.name = "c"});
  const SharedBytes batch(bomb(h, 33 * kMiB));
  for (int i = 0; i < 4; ++i) request.topic_data[0].partition_data.push_back({.index = i, .records = batch});
  request.topic_data.push_back({.name = "t"});
  request.topic_data[1].partition_data.push_back({.index = 0, .records = batch});
  const auto response = h.ask(request, 9);
  const auto& answers = response.responses.at(0).partition_responses;
  EXPECT_EQ(answers.at(0).error_code, ErrorCode::kNone);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(answers.at(i).error_code, ErrorCode::kKafkaStorageError) << "clients send it again, by itself";
    EXPECT_NE(answers.at(i).error_message.value_or("").find("decompress"), std::string::npos);
  }
  EXPECT_EQ(response.responses.at(1).partition_responses.at(0).error_code, ErrorCode::kNone) << "is not looked into";

  EXPECT_EQ(h.only(h.ask(h.produce("c", bomb(h, 65 * kMiB)), 9)).error_code, ErrorCode::kMessageTooLarge);
}

TEST(Produce, ABatchThatCannotBeReadUsesUpWhatItsRequestMayDecompress) {
  CoreHarness h;
  h.create("c", 2, {{.name = "cleanup.policy", .value = "compact"}});
  auto request = h.produce("c", bomb(h, 100));
  auto& partitions = request.topic_data[0].partition_data;
  partitions.push_back({.index = 1, .records = partitions[0].records});
  wire::BatchBuilder builder({.codec = wire::Codec::kZstd});
  builder.add(h.now_ms(), std::nullopt, std::nullopt);
  ByteBuffer damaged = builder.build();
  damaged.back() ^= std::byte{1};
  wire::set_create_time(damaged, h.now_ms());  // and the CRC with it
  partitions[0].records = SharedBytes(std::move(damaged));
  const auto response = h.ask(request, 9);
  const auto& answers = response.responses.at(0).partition_responses;
  EXPECT_EQ(answers.at(0).error_code, ErrorCode::kInvalidRecord);
  EXPECT_EQ(answers.at(1).error_code, ErrorCode::kKafkaStorageError);
}

}  // namespace
}  // namespace weir::broker
