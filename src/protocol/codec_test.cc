#include "protocol/codec.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "protocol/api_tables.h"
#include "protocol/error_code.h"
#include "protocol/messages/0_produce.h"
#include "protocol/messages/12_heartbeat.h"
#include "protocol/messages/18_api_versions.h"
#include "protocol/messages/1_fetch.h"
#include "protocol/messages/3_metadata.h"
#include "protocol/random.h"
#include "protocol/records/consumer_protocol.h"
#include "protocol/records/group_records.h"
#include "wire/writer.h"

namespace weir::protocol {
namespace {

using wire::Reader;

std::vector<const Table*> all_tables() {
  std::vector<const Table*> tables(other_tables().begin(), other_tables().end());
  for (const ApiTables& api : api_tables()) {
    tables.push_back(&api.request());
    tables.push_back(&api.response());
  }
  return tables;
}

using Message = std::unique_ptr<void, void (*)(void*)>;
Message create(const Table& table) { return {table.ops->create(), table.ops->destroy}; }

ByteBuffer bytes_of(const Table& table, const void* message, int version) {
  Payload out;
  encode(table, message, version, out);
  return out.flatten().value();
}
template <typename M>
ByteBuffer bytes_of(const M& message, int version) {
  return bytes_of(M::table(), &message, version);
}

TEST(Codec, EveryMessageOfEveryVersionComesBack) {
  std::mt19937_64 random(20261130);
  for (const Table* table : all_tables()) {
    for (int version = table->versions.first; version <= table->versions.last; ++version) {
      for (int round = 0; round < 40; ++round) {
        const Message message = create(*table);
        randomize(*table, message.get(), version, random);
        const ByteBuffer bytes = bytes_of(*table, message.get(), version);
        ASSERT_EQ(encoded_size(*table, message.get(), version), bytes.size()) << table->name << " " << version;

        const Message again = create(*table);
        Reader reader{SharedBytes(bytes)};
        const auto decoded = decode(*table, again.get(), version, reader);
        ASSERT_TRUE(decoded) << decoded.error().message;
        EXPECT_EQ(reader.remaining(), 0u);
        ASSERT_TRUE(equal(*table, message.get(), again.get())) << print(*table, message.get(), version) << "\n"
                                                               << print(*table, again.get(), version);
        ASSERT_EQ(bytes_of(*table, again.get(), version), bytes) << print(*table, message.get(), version);
      }
    }
  }
}

TEST(Codec, EveryMessageCutAnywhereIsRefused) {
  std::mt19937_64 random(1);
  for (const Table* table : all_tables()) {
    for (int version = table->versions.first; version <= table->versions.last; ++version) {
      const Message message = create(*table);
      randomize(*table, message.get(), version, random);
      const ByteBuffer bytes = bytes_of(*table, message.get(), version);
      for (Bytes n = 0; n < bytes.size(); n += 1 + bytes.size() / 40) {
        const Message cut = create(*table);
        Reader reader(ByteView(bytes).first(n));
        const auto decoded = decode(*table, cut.get(), version, reader);
        ASSERT_FALSE(decoded) << table->name << " version " << version << " cut to " << n << " of " << bytes.size();
        EXPECT_EQ(decoded.error().kind, ErrorKind::kInvalid);
      }
    }
  }
}

TEST(Codec, VersionOutsideTheTableIsUnsupportedAndNamed) {
  const auto decoded = decode<HeartbeatRequest>(ByteView(), 5);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(decoded.error().message, "HeartbeatRequest has no version 5, only 0 to 4");
}

TEST(Codec, NullWhereNullIsNotAllowed) {
  wire::Writer out;
  out.nullable_string(std::nullopt, wire::Form::kClassic);  // the group id
  const auto decoded = decode<HeartbeatRequest>(out.view(), 0);
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("group_id"), std::string::npos);

  // The other way round null becomes empty: in version 0 all topics are asked for by an empty list.
  EXPECT_EQ(bytes_of(MetadataRequest{}, 0), ByteBuffer(4));
}

TEST(Codec, DefaultsOfTaggedFieldsAreNotSent) {
  FetchRequest request;
  const Bytes plain = encoded_size(request, 16);
  request.cluster_id = "abc";
  EXPECT_EQ(encoded_size(request, 16), plain + 2 + 4);  // tag, size, compact string
  EXPECT_EQ(decode<FetchRequest>(bytes_of(request, 16), 16)->cluster_id, "abc");
  EXPECT_EQ(decode<FetchRequest>(bytes_of(request, 11), 11)->cluster_id, std::nullopt);
}

TEST(Codec, UnknownTaggedFieldsAreSkippedAndWrongOnesRefused) {
  const auto heartbeat_with = [](std::initializer_list<int> tagged) {
    ByteBuffer bytes = bytes_of(HeartbeatResponse{.throttle_time_ms = 7}, 4);
    bytes.pop_back();  // the count of tagged fields: none
    for (const int b : tagged) bytes.push_back(static_cast<std::byte>(b));
    return decode<HeartbeatResponse>(bytes, 4);
  };
  const auto skipped = heartbeat_with({2, 0, 3, 1, 2, 3, 100, 0});
  ASSERT_TRUE(skipped) << skipped.error().message;
  EXPECT_EQ(skipped->throttle_time_ms, 7);
  EXPECT_FALSE(heartbeat_with({1, 0, 4, 1, 2, 3}));                          // longer than the message
  EXPECT_FALSE(heartbeat_with({2, 5, 0, 5, 0}));                             // the same tag twice
  EXPECT_FALSE(heartbeat_with({0xff, 0xff, 0xff, 0xff, 0x0f, 0}));           // four billion of them
  EXPECT_FALSE(heartbeat_with({1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2}));  // four billion bytes

  FetchRequest request{.cluster_id = "abc"};
  ByteBuffer bytes = bytes_of(request, 16);
  bytes[bytes.size() - 5] = std::byte{3};  // the size of the known field, which takes 4
  EXPECT_FALSE(decode<FetchRequest>(bytes, 16));
}

TEST(Codec, CountsThatLieDoNotAllocate) {
  wire::Writer huge;
  huge.int32(INT32_MAX);
  EXPECT_FALSE(decode<MetadataRequest>(huge.view(), 1));

  // True counts of the smallest elements may still not multiply the memory without bound: 8 MiB of empty names.
  wire::Writer dense;
  constexpr std::uint32_t kNames = 8 * kMiB;
  dense.varuint(kNames + 1);
  dense.raw(ByteBuffer(kNames, std::byte{1}));
  Reader reader(dense.view());
  struct Names {
    std::vector<std::string> names;
    WEIR_MESSAGE(Names, valid(0, 0).flexible(0), WEIR_FIELD(names, since(0)))
  };
  const auto decoded = decode<Names>(reader, 0);
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("too much memory"), std::string::npos);
}

TEST(Codec, ProducedRecordsAreASliceOfTheRequest) {
  ProduceRequest request;
  request.topic_data.push_back({.name = "t"});
  request.topic_data[0].partition_data.push_back({.index = 3, .records = SharedBytes(ByteBuffer(5000, std::byte{7}))});
  for (const int version : {3, 9, 13}) {
    const SharedBytes frame(bytes_of(request, version));
    const auto decoded = decode<ProduceRequest>(frame, version);
    ASSERT_TRUE(decoded) << decoded.error().message;
    const SharedBytes& records = *decoded->topic_data[0].partition_data[0].records;
    EXPECT_EQ(records.size(), 5000u);
    EXPECT_GT(records.view().data(), frame.view().data());
    EXPECT_LT(records.view().data(), frame.view().data() + frame.size());
  }
}

class OneFile final : public ReadableFile {
 public:
  Result<Bytes> read_at(std::uint64_t position, std::span<std::byte> out) const override {
    for (Bytes i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(position + i);
    return out.size();
  }
  int descriptor() const override { return -1; }
};

TEST(Codec, FetchedFileRangesPassUntouched) {
  FetchResponse response;
  FetchResponse::PartitionData partition{.partition_index = 1, .high_watermark = 9};
  partition.records.emplace().append(FileRange{std::make_shared<OneFile>(), 4, 100'000});
  response.responses.push_back({.topic = "t", .partitions = {partition}});
  const Payload out = encode_response(77, response, 11);
  ASSERT_EQ(out.pieces().size(), 2u);  // everything up to the records, then the file
  EXPECT_EQ(std::get<FileRange>(out.pieces()[1]).position, 4u);

  ByteBuffer flat = out.flatten().value();
  Reader length(flat);
  EXPECT_EQ(length.int32(), static_cast<std::int32_t>(flat.size() - 4));
  auto reply = open_response(SharedBytes(flat).slice(4, flat.size() - 4), ApiKey::kFetch, 11);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->correlation_id, 77);
  const auto decoded = decode<FetchResponse>(reply->body, 11);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->responses[0].partitions[0].records->size(), 100'000u);
}

SharedBytes without_length(const Payload& frame) {
  const SharedBytes flat(frame.flatten().value());
  return flat.slice(4, flat.size() - 4);
}

TEST(Frame, RequestHeaderFollowsTheVersion) {
  for (const int version : {3, 4}) {
    const HeartbeatRequest request{.group_id = "g", .generation_id = 5, .member_id = "m"};
    auto opened = open_request(without_length(encode_request(9, "client", request, version)));
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->header.request_api_key, 12);
    EXPECT_EQ(opened->header.request_api_version, version);
    EXPECT_EQ(opened->header.correlation_id, 9);
    EXPECT_EQ(opened->header.client_id, "client");
    const auto body = decode<HeartbeatRequest>(opened->body, version);
    ASSERT_TRUE(body) << body.error().message;
    EXPECT_TRUE(equal(*body, request));
  }
}

TEST(Frame, ApiVersionsAnswersWithTheOldestHeader) {
  const ApiVersionsResponse response{.api_keys = {{.api_key = 18, .max_version = 4}}};
  EXPECT_EQ(encode_response(1, response, 4).size(), 8 + encoded_size(response, 4));
  EXPECT_EQ(encode_response(1, HeartbeatResponse{}, 4).size(), 9 + encoded_size(HeartbeatResponse{}, 4));
  auto reply = open_response(without_length(encode_response(1, response, 4)), ApiKey::kApiVersions, 4);
  EXPECT_TRUE(equal(*decode<ApiVersionsResponse>(reply->body, 4), response));
}

TEST(Frame, ApiVersionsFromTheFutureCanBeOpened) {
  wire::Writer out;
  out.int16(18);
  out.int16(99);
  out.int32(3);
  out.nullable_string("c", wire::Form::kClassic);
  out.varuint(0);
  const auto opened = open_request(SharedBytes(out.take()));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->header.request_api_version, 99);
}

TEST(Frame, GarbageAndUnknownApisAreNamed) {
  const auto error = [](std::string_view bytes) {
    return open_request(SharedBytes(to_buffer(as_bytes(bytes)))).error();
  };
  EXPECT_EQ(error("").kind, ErrorKind::kInvalid);
  EXPECT_EQ(error("GET / HTTP/1.1\r\n\r\n").kind, ErrorKind::kUnsupported);
  EXPECT_EQ(error(std::string_view("\0\x44\0\1", 4)).message,
            "API 68 (ConsumerGroupHeartbeat) version 1 is not served");
  EXPECT_EQ(error(std::string_view("\0\x0c\0\1\0\0\0\1\0\x09"
                                   "abc",
                                   13))
                .kind,
            ErrorKind::kInvalid);
}

TEST(Versioned, PrefixIsTheVersionOrTheTypeOfTheRecord) {
  const OffsetCommitKey key{.group = "g", .topic = "t", .partition = 3};
  const ByteBuffer bytes = encode_key(key);
  EXPECT_EQ(record_type(bytes), 1);
  EXPECT_TRUE(equal(*decode_key<OffsetCommitKey>(bytes), key));
  EXPECT_EQ(record_type({}), -1);

  const OffsetCommitValue value{.offset = 12, .leader_epoch = 4, .metadata = "m", .commit_timestamp = 1000};
  EXPECT_TRUE(equal(*decode_versioned<OffsetCommitValue>(encode_versioned(value, 3)), value));

  ConsumerProtocolSubscription subscription{.topics = {"a", "b"}};
  ByteBuffer newer = encode_versioned(subscription, 3);
  newer[1] = std::byte{9};
  EXPECT_EQ(decode_versioned<ConsumerProtocolSubscription>(newer).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(decode_versioned<ConsumerProtocolSubscription>(newer, true)->topics, subscription.topics);
}

TEST(Print, IsOneLineWithTheFieldsOfTheVersion) {
  const HeartbeatRequest request{.group_id = "a\"b\n", .generation_id = 3, .member_id = "m"};
  EXPECT_EQ(print(request, 0), R"(HeartbeatRequest{group_id="a\"b\x0a", generation_id=3, member_id="m"})");
  EXPECT_EQ(print(HeartbeatResponse{.error_code = ErrorCode::kUnknownMemberId}, 0),
            "HeartbeatResponse{error_code=UNKNOWN_MEMBER_ID}");
}

TEST(ErrorCodes, HaveKafkasNumbersNamesAndRetries) {
  EXPECT_EQ(name(ErrorCode::kNotCoordinator), "NOT_COORDINATOR");
  EXPECT_EQ(static_cast<int>(ErrorCode::kInvalidRecord), 87);
  EXPECT_TRUE(is_retriable(ErrorCode::kKafkaStorageError));
  EXPECT_FALSE(is_retriable(ErrorCode::kUnknownMemberId));
  EXPECT_FALSE(message(ErrorCode::kUnsupportedVersion).empty());
  EXPECT_EQ(name(static_cast<ErrorCode>(9999)), "UNKNOWN_ERROR_CODE");
  EXPECT_EQ(name(static_cast<ErrorCode>(-32768)), "UNKNOWN_ERROR_CODE");
}

}  // namespace
}  // namespace weir::protocol
