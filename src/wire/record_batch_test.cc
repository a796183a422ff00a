#include "wire/record_batch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "wire/crc32c.h"
#include "wire/golden.h"

namespace weir::wire {
namespace {

constexpr Bytes kMax = 64 * kMiB;
constexpr Codec kCodecs[] = {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd};

ByteBuffer three_records(BatchOptions options = {}) {
  BatchBuilder builder(options);
  const RecordHeader headers[] = {{"h", as_bytes("v")}, {"", std::nullopt}};
  builder.add(1000, as_bytes("k"), as_bytes("value"), headers);
  builder.add(1010, std::nullopt, as_bytes(""));
  builder.add(990, as_bytes(""), std::nullopt);
  return builder.build();
}

/// Writes over bytes and makes the CRC right again, as a producer with a bug would.
ByteBuffer with(ByteBuffer batch, Bytes at, std::initializer_list<int> bytes) {
  for (const int b : bytes) batch[at++] = static_cast<std::byte>(b);
  const std::uint32_t crc = crc32c(ByteView(batch).subspan(21));
  for (Bytes i = 0; i < 4; ++i) batch[17 + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
  return batch;
}

TEST(RecordBatch, HeaderAndRecordsComeBackWithEveryCodec) {
  for (const Codec codec : kCodecs) {
    SCOPED_TRACE(name(codec));
    const ByteBuffer batch = three_records({.base_offset = Offset(42),
                                            .leader_epoch = 7,
                                            .codec = codec,
                                            .transactional = true,
                                            .producer_id = ProducerId(9),
                                            .producer_epoch = 3,
                                            .base_sequence = 2147483647});
    const auto header = check_batch(batch);
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->size(), batch.size());
    EXPECT_EQ(header->base_offset, Offset(42));
    EXPECT_EQ(header->last_offset(), Offset(44));
    EXPECT_EQ(header->next_offset(), Offset(45));
    EXPECT_EQ(header->leader_epoch, 7);
    EXPECT_EQ(header->codec(), codec);
    EXPECT_TRUE(header->transactional());
    EXPECT_FALSE(header->control());
    EXPECT_EQ(header->max_timestamp, 1010);
    EXPECT_EQ(header->last_sequence(), 1);  // wraps: 2147483647, 0, 1

    auto reader = RecordReader::open(batch, kMax);
    ASSERT_TRUE(reader) << reader.error().message;
    const auto first = reader->next();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->offset, Offset(42));
    EXPECT_EQ(as_text(*first->value), "value");
    ASSERT_EQ(first->headers.size(), 2u);
    EXPECT_EQ(first->headers[0].key, "h");
    EXPECT_FALSE(first->headers[1].value);
    const auto second = reader->next();
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->key);
    EXPECT_TRUE(second->value && second->value->empty());
    const auto third = reader->next();
    ASSERT_TRUE(third);
    EXPECT_EQ(third->timestamp, 990);
    EXPECT_TRUE(third->key && third->key->empty());
    EXPECT_FALSE(third->value);
    EXPECT_FALSE(reader->next());
    EXPECT_TRUE(reader->result());

    const auto contents = check_records(batch, kMax);
    ASSERT_TRUE(contents) << contents.error().message;
    EXPECT_EQ(contents->max_timestamp, 1010);
    EXPECT_EQ(contents->offset_of_max_timestamp, Offset(43));
    EXPECT_TRUE(contents->has_null_key);
  }
}

TEST(RecordBatch, OldFormatsAndNonsenseAreToldApart) {
  const ByteBuffer good = three_records();
  const auto fault = [](ByteView bytes) { return check_batch(bytes).error().fault; };
  for (const int magic : {0, 1}) {
    ByteBuffer old = good;
    old[16] = static_cast<std::byte>(magic);
    EXPECT_EQ(fault(old), BatchFault::kOldMagic);
    EXPECT_EQ(fault(ByteView(old).first(34)), BatchFault::kOldMagic) << "old messages may be shorter than our header";
  }
  EXPECT_EQ(fault(with(good, 16, {3})), BatchFault::kMagic);
  EXPECT_EQ(fault(with(good, 8, {0, 0, 0, 48})), BatchFault::kLength);
  EXPECT_EQ(fault(with(good, 8, {0x80, 0, 0, 0})), BatchFault::kLength);
  EXPECT_EQ(fault(with(good, 8, {0x7f, 0xff, 0xff, 0xff})), BatchFault::kIncomplete);
  EXPECT_EQ(fault(with(good, 22, {5})), BatchFault::kCodec);
  EXPECT_EQ(fault(with(good, 23, {0xff, 0xff, 0xff, 0xff})), BatchFault::kHeader);  // last offset delta -1
  EXPECT_EQ(fault(with(good, 57, {0x7f, 0, 0, 0})), BatchFault::kHeader);           // record count
  EXPECT_EQ(fault(with(good, 43, {0, 0, 0, 0, 0, 0, 0, 1})), BatchFault::kHeader);  // a producer id, no epoch
}

TEST(RecordBatch, EveryFlippedByteUnderTheChecksumIsNoticed) {
  const ByteBuffer good = three_records();
  for (Bytes i = 17; i < good.size(); ++i) {
    ByteBuffer bad = good;
    bad[i] ^= std::byte{0x40};
    EXPECT_FALSE(check_batch(bad)) << "byte " << i;
  }
}

TEST(RecordBatch, CutAnywhereIsIncomplete) {
  const ByteBuffer good = three_records();
  for (Bytes n = 0; n < good.size(); ++n) {
    const auto cut = check_batch(ByteView(good).first(n));
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().fault, BatchFault::kIncomplete) << n << " bytes";
  }
}

TEST(RecordBatch, OffsetAndEpochChangeWithoutTheChecksum) {
  ByteBuffer batch = three_records();
  set_base_offset(batch, Offset(123456789012));
  set_leader_epoch(batch, 5);
  const auto header = check_batch(batch);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->base_offset, Offset(123456789012));
  EXPECT_EQ(header->leader_epoch, 5);
}

TEST(RecordBatch, LogAppendTimeIsTheTimeOfEveryRecord) {
  ByteBuffer batch = three_records();
  set_log_append_time(batch, 5555);
  const auto header = check_batch(batch);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_TRUE(header->log_append_time());
  EXPECT_EQ(header->max_timestamp, 5555);
  auto reader = RecordReader::open(batch, kMax);
  while (const auto record = reader->next()) EXPECT_EQ(record->timestamp, 5555);
  EXPECT_TRUE(reader->result());
}

TEST(RecordBatch, TheWalkSeesTheRecordsOwnTimestampsAndTheHeaderCanBeSetToThem) {
  ByteBuffer batch = three_records();
  set_log_append_time(batch, 5555);
  const auto contents = check_records(batch, kMax);
  ASSERT_TRUE(contents) << contents.error().message;
  EXPECT_EQ(contents->min_timestamp, 990);
  EXPECT_EQ(contents->max_timestamp, 1010);
  EXPECT_EQ(contents->offset_of_max_timestamp, Offset(1));
  EXPECT_EQ(contents->plain_size, batch.size() - kBatchHeaderSize);
  set_create_time(batch, contents->max_timestamp);
  EXPECT_EQ(batch, three_records());

  BatchBuilder none;
  none.add(-1, std::nullopt, std::nullopt);
  const auto without = check_records(none.build(), kMax);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->min_timestamp, -1);
  EXPECT_EQ(without->max_timestamp, -1);
}

TEST(RecordBatch, WalkFindsRecordsThatContradictTheHeader) {
  const ByteBuffer good = three_records();
  const auto fault = [](const ByteBuffer& batch) {
    const auto checked = check_records(batch, kMax);
    return checked ? std::string("none") : checked.error().message;
  };
  EXPECT_EQ(fault(good), "none");
  EXPECT_NE(fault(with(good, 61, {2})), "none");                            // record length
  EXPECT_NE(fault(with(good, 61, {0x7f})), "none");                         // beyond the batch
  EXPECT_NE(fault(with(good, 64, {2})).find("offset"), std::string::npos);  // offset delta 1 for the first record
  EXPECT_NE(fault(with(good, 57, {0, 0, 0, 2})), "none");                   // fewer records than offsets
  EXPECT_NE(fault(with(good, 23, {0, 0, 0, 1})), "none");
  EXPECT_NE(fault(with(good, 23, {0x7f, 0xff, 0xff, 0xff})), "none");
}

TEST(RecordBatch, SplitsAProduceField) {
  ByteBuffer two = three_records();
  const Bytes one = two.size();
  const ByteBuffer second = three_records({.codec = Codec::kZstd});
  two.insert(two.end(), second.begin(), second.end());
  const SharedBytes field(two);
  const auto batches = split_batches(field);
  ASSERT_TRUE(batches) << batches.error().message;
  ASSERT_EQ(batches->size(), 2u);
  EXPECT_EQ((*batches)[1].view().data(), field.view().data() + one);
  EXPECT_EQ(split_batches(field.slice(0, field.size() - 1)).error().fault, BatchFault::kIncomplete);
  EXPECT_TRUE(split_batches(SharedBytes())->empty());
}

/// What the header's CRC and length do not cover the same way: the records before compression.
ByteBuffer plain_records(ByteView batch) {
  const auto header = read_batch_header(batch);
  return decompress(header->codec(), batch.subspan(kBatchHeaderSize), kMax).value();
}

TEST(RecordBatch, OfEveryClientAndCodecIsReadAndRebuiltTheSame) {
  const auto lines = golden_lines(WEIR_TESTDATA "/batches.txt");
  ASSERT_GE(lines.size(), 11u);
  for (const auto& line : lines) {
    SCOPED_TRACE(line[0] + " " + line[1]);
    const ByteBuffer golden = from_hex(line[2]);
    const auto header = check_batch(golden);
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(name(header->codec()), line[1]);
    EXPECT_EQ(header->size(), golden.size());
    const auto contents = check_records(golden, kMax);
    ASSERT_TRUE(contents) << contents.error().message;
    EXPECT_EQ(contents->max_timestamp, header->max_timestamp);

    BatchBuilder builder({.base_offset = header->base_offset,
                          .leader_epoch = header->leader_epoch,
                          .codec = header->codec(),
                          .producer_id = header->producer_id,
                          .producer_epoch = header->producer_epoch,
                          .base_sequence = header->base_sequence});
    auto reader = RecordReader::open(golden, kMax);
    while (const auto record = reader->next())
      builder.add(record->timestamp, record->key, record->value, record->headers);
    EXPECT_TRUE(reader->result());
    const ByteBuffer rebuilt = builder.build();
    if (header->codec() == Codec::kNone) {
      EXPECT_EQ(rebuilt, golden);
    } else {
      // Compressors differ in level; what goes into them may not, nor the header but for length and CRC.
      EXPECT_EQ(plain_records(rebuilt), plain_records(golden));
      EXPECT_TRUE(std::ranges::equal(ByteView(rebuilt).subspan(21, 40), ByteView(golden).subspan(21, 40)));
    }
  }
}

std::string noise(std::size_t size, bool compressible) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(compressible ? 'a' + random() % 3 : random());
  return text;
}

TEST(Compression, ComesBackAndStopsAtTheLimit) {
  for (const Codec codec : kCodecs) {
    for (const std::size_t size : {0u, 1u, 1000u, 40'000u, 300'000u}) {
      for (const bool compressible : {false, true}) {
        SCOPED_TRACE(std::string(name(codec)) + " " + std::to_string(size));
        const std::string plain = noise(size, compressible);
        const ByteBuffer packed = compress(codec, as_bytes(plain));
        const auto exact = decompress(codec, packed, size);
        ASSERT_TRUE(exact) << exact.error().message;
        EXPECT_EQ(as_text(*exact), plain);
        if (size == 0) continue;
        const auto short_by_one = decompress(codec, packed, size - 1);
        ASSERT_FALSE(short_by_one);
        EXPECT_EQ(short_by_one.error().kind, ErrorKind::kNoSpace);
      }
    }
  }
}

TEST(Compression, CutAndDamagedDataAreRefused) {
  const std::string plain = noise(70'000, true);
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    SCOPED_TRACE(name(codec));
    const ByteBuffer packed = compress(codec, as_bytes(plain));
    for (const Bytes n : {Bytes{0}, Bytes{1}, packed.size() / 2, packed.size() - 1}) {
      const auto cut = decompress(codec, ByteView(packed).first(n), kMax);
      ASSERT_FALSE(cut) << n << " of " << packed.size();
      EXPECT_EQ(cut.error().kind, ErrorKind::kInvalid);
    }
    EXPECT_FALSE(decompress(codec, as_bytes("GET / HTTP/1.1\r\n\r\n"), kMax));
  }
}

TEST(Compression, BombStopsAtTheLimit) {
  const ByteBuffer zeros(32 * kMiB);
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    const auto bomb = decompress(codec, compress(codec, zeros), kMiB);
    ASSERT_FALSE(bomb) << name(codec);
    EXPECT_EQ(bomb.error().kind, ErrorKind::kNoSpace);
  }
  const auto batch = [&] {
    BatchBuilder builder({.codec = Codec::kZstd});
    builder.add(0, std::nullopt, zeros);
    return builder.build();
  }();
  EXPECT_EQ(RecordReader::open(batch, kMiB).error().fault, BatchFault::kTooLarge);
}

TEST(Compression, SnappyLengthThatLiesAllocatesNothing) {
  const auto lie = decompress(Codec::kSnappy,
                              as_bytes("\xff\xff\xff\xff\x07"
                                       "a"),
                              kGiB);
  ASSERT_FALSE(lie);
  EXPECT_EQ(lie.error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace weir::wire
