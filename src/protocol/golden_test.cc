// Bytes that kcat, Python and Java exchanged with Apache Kafka, and that Kafka wrote to disk: read, and written again.
#include "wire/golden.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <tuple>

#include "protocol/api_tables.h"
#include "protocol/codec.h"
#include "protocol/records/group_records.h"
#include "protocol/records/producer_snapshot.h"
#include "wire/crc32c.h"

namespace weir::protocol {
namespace {

using wire::from_hex;

/// Reads one struct and writes it again; the bytes it took must come out.
void expect_same(const Table& table, int version, wire::Reader& reader, ByteView whole) {
  const std::unique_ptr<void, void (*)(void*)> message(table.ops->create(), table.ops->destroy);
  const Bytes start = reader.position();
  const auto decoded = decode(table, message.get(), version, reader);
  ASSERT_TRUE(decoded) << decoded.error().message;
  Payload out;
  encode(table, message.get(), version, out);
  EXPECT_EQ(out.flatten().value(), to_buffer(whole.subspan(start, reader.position() - start)))
      << print(table, message.get(), version);
  EXPECT_EQ(out.size(), encoded_size(table, message.get(), version));
}

TEST(Golden, FramesOfEveryClientAreReadAndWrittenTheSame) {
  const auto lines = wire::golden_lines(WEIR_TESTDATA "/frames.txt");
  std::set<std::string> clients;
  for (const auto& line : lines) {
    const auto& [client, direction, key, version, hex] = std::tie(line[0], line[1], line[2], line[3], line[4]);
    SCOPED_TRACE(client + " " + direction + " " + key + " version " + version);
    clients.insert(client);
    const bool request = direction == "request";
    const int number = std::stoi(version);
    const ApiTables* api = find_api(static_cast<std::int16_t>(std::stoi(key)));
    ASSERT_NE(api, nullptr);
    const Table& table = request ? api->request() : api->response();
    const ByteBuffer frame = from_hex(hex);

    const Table& header = request ? RequestHeader::table() : ResponseHeader::table();
    const bool flexible_header = table.flexible(number) && (request || api->key != ApiKey::kApiVersions);
    wire::Reader reader{SharedBytes(frame)};
    expect_same(header, (request ? 1 : 0) + (flexible_header ? 1 : 0), reader, frame);
    expect_same(table, number, reader, frame);
    EXPECT_EQ(reader.remaining(), 0u);

    if (request) {
      EXPECT_TRUE(open_request(SharedBytes(frame)));
    } else {
      EXPECT_TRUE(open_response(SharedBytes(frame), api->key, number));
    }
  }
  EXPECT_EQ(clients, (std::set<std::string>{"java", "kcat", "python"}));
  EXPECT_GE(lines.size(), 100u);
}

template <typename Key, typename Value>
void expect_same_record(const ByteBuffer& key, const ByteBuffer& value) {
  EXPECT_EQ(record_type(key), Key::kRecordType);
  const auto decoded_key = decode_key<Key>(key);
  ASSERT_TRUE(decoded_key) << decoded_key.error().message;
  EXPECT_EQ(encode_key(*decoded_key), key);
  const auto decoded = decode_versioned<Value>(value);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(encode_versioned(*decoded, wire::Reader(value).int16()), value);
}

TEST(Golden, RecordsOfConsumerOffsetsAreReadAndWrittenTheSame) {
  const auto lines = wire::golden_lines(WEIR_TESTDATA "/records.txt");
  std::set<std::string> kinds;
  for (const auto& line : lines) {
    kinds.insert(line[0]);
    if (line[0] == "offset_commit")
      expect_same_record<OffsetCommitKey, OffsetCommitValue>(from_hex(line[1]), from_hex(line[2]));
    if (line[0] == "group_metadata") {
      expect_same_record<GroupMetadataKey, GroupMetadataValue>(from_hex(line[1]), from_hex(line[2]));
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"group_metadata", "offset_commit", "producer_snapshot"}));
}

TEST(Golden, ProducerSnapshotsChecksumCoversWhatFollowsIt) {
  for (const auto& line : wire::golden_lines(WEIR_TESTDATA "/records.txt")) {
    if (line[0] != "producer_snapshot") continue;
    const ByteBuffer bytes = from_hex(line[1]);
    const auto snapshot = decode_versioned<ProducerSnapshot>(bytes);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    ASSERT_EQ(snapshot->producer_entries.size(), 1u);
    EXPECT_EQ(snapshot->producer_entries[0].last_sequence, 2);
    EXPECT_EQ(snapshot->crc, wire::crc32c(ByteView(bytes).subspan(6)));
    EXPECT_EQ(encode_versioned(*snapshot, 1), bytes);
  }
}

}  // namespace
}  // namespace weir::protocol
