#include "broker/core.h"

#include <gtest/gtest.h>

#include <random>

#include "broker/core_harness.h"
#include "protocol/messages/15_describe_groups.h"
#include "protocol/messages/18_api_versions.h"
#include "protocol/messages/22_init_producer_id.h"
#include "protocol/messages/2_list_offsets.h"
#include "protocol/messages/32_describe_configs.h"
#include "protocol/messages/3_metadata.h"
#include "protocol/messages/8_offset_commit.h"
#include "protocol/messages/9_offset_fetch.h"
#include "wire/crc32c.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using protocol::FetchResponse;
using protocol::ProduceResponse;
using std::chrono::milliseconds;
using Records = std::vector<std::pair<std::int64_t, std::string>>;

TEST(Core, AcknowledgesAndShowsOnlyWhatIsDurable) {
  CoreHarness h;
  h.create("t");
  const auto produced = h.send(h.produce("t", h.batch({"a", "b"})), 9);
  const auto polling = h.send(h.fetch("t", 0, 500), 11, "reader", 2);
  EXPECT_EQ(h.answer<ProduceResponse>(produced), nullptr);
  EXPECT_EQ(h.answer<FetchResponse>(polling), nullptr);
  EXPECT_TRUE(h.long_polls.contains(polling));
  EXPECT_FALSE(h.long_polls.contains(produced)) << "a parked Produce counts against the request queue";

  h.run_syncs();
  const auto* response = h.answer<ProduceResponse>(produced);
  ASSERT_NE(response, nullptr);
  EXPECT_EQ(h.only(*response).error_code, ErrorCode::kNone);
  EXPECT_EQ(h.only(*response).base_offset, 0);
  const auto* fetched = h.answer<FetchResponse>(polling);
  ASSERT_NE(fetched, nullptr);
  EXPECT_EQ(h.records(*fetched), (Records{{0, "a"}, {1, "b"}}));
  EXPECT_EQ(h.only(*fetched).high_watermark, 2);
}

TEST(Core, PageCacheSemanticsAnswerAtOnce) {
  CoreHarness h({"log.flush.interval.messages=9223372036854775807"});
  h.create("t");
  h.syncs.clear();
  const auto produced = h.send(h.produce("t", h.batch({"a"}), 1), 7);
  EXPECT_NE(h.answer<ProduceResponse>(produced), nullptr);
  EXPECT_TRUE(h.syncs.empty());
  EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)), (Records{{0, "a"}}));
}

TEST(Core, ProducesWithOneFsyncForAllThatArriveMeanwhile) {
  CoreHarness h;
  h.create("t");
  const auto before = h.files.counts().syncs;
  std::vector<RequestId> sent;
  for (int i = 0; i < 20; ++i) sent.push_back(h.send(h.produce("t", h.batch({"x"})), 9));
  h.run_syncs();
  for (const auto id : sent) EXPECT_NE(h.answer<ProduceResponse>(id), nullptr);
  EXPECT_LE(h.files.counts().syncs - before, 4u);
}

TEST(Core, ACompressedBatchWhoseCountContradictsItsOffsetsIsRefused) {
  CoreHarness h;
  h.create("t");
  for (const bool spoiled : {true, false}) {
    auto batch = h.batch({"a"}, {.codec = wire::Codec::kGzip});
    if (spoiled) {
      constexpr std::size_t kCrcAt = 17, kLastOffsetDeltaAt = 23;
      for (std::size_t at = kLastOffsetDeltaAt; at < kLastOffsetDeltaAt + 4; ++at) batch[at] = std::byte{0x7f};
      const std::uint32_t crc = wire::crc32c(ByteView(batch).subspan(kCrcAt + 4));
      for (std::size_t n = 0; n < 4; ++n) batch[kCrcAt + n] = static_cast<std::byte>(crc >> (24 - 8 * n));
    }
    EXPECT_EQ(h.only(h.ask(h.produce("t", batch), 9)).error_code,
              spoiled ? ErrorCode::kInvalidRecord : ErrorCode::kNone);
  }
}

TEST(Core, APartitionNamedTwiceInAProduceIsAppendedToOnce) {
  CoreHarness h;
  h.create("t");
  auto request = h.produce("t", h.batch({"a"}));
  request.topic_data.push_back(request.topic_data[0]);
  const auto response = h.ask(request, 9);
  EXPECT_EQ(response.responses.at(0).partition_responses.at(0).error_code, ErrorCode::kNone);
  EXPECT_EQ(response.responses.at(1).partition_responses.at(0).error_code, ErrorCode::kInvalidRequest);
  EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)).size(), 1u);
}

TEST(Core, IdleFetchEndsAtItsDeadlineWithoutAThrottleTime) {
  CoreHarness h;
  h.create("t");
  const auto id = h.send(h.fetch("t", 0, 500), 11);
  h.advance(milliseconds(499));
  EXPECT_EQ(h.answer<FetchResponse>(id), nullptr);
  ASSERT_TRUE(h.core->next_deadline());
  EXPECT_LE(*h.core->next_deadline(), h.clock.now().mono + milliseconds(2));
  h.advance(milliseconds(2));
  const auto* response = h.answer<FetchResponse>(id);
  ASSERT_NE(response, nullptr);
  EXPECT_EQ(response->throttle_time_ms, 0);
  EXPECT_TRUE(h.only(*response).records->empty());
}

TEST(Core, FirstBatchIsSentWholeWhateverTheLimit) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"small"})), 9);
  h.ask(h.produce("t", h.batch({std::string(300UL * 1024, 'x')})), 9);
  auto request = h.fetch("t", 1);
  request.topics[0].partitions[0].partition_max_bytes = 1024;
  EXPECT_EQ(h.records(h.ask(request, 11)).size(), 1u);
  request.topics[0].partitions[0].fetch_offset = 0;
  EXPECT_EQ(h.records(h.ask(request, 11)).size(), 1u) << "the second batch does not fit";
}

// kafka-go asks for session -1, epoch -1: no session, all partitions.
TEST(Core, AFullFetchIsServedWhateverItsSession) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"a"})), 9);
  auto request = h.fetch("t", 0);
  for (const auto& [session, epoch] : {std::pair{0, 0}, {0, -1}, {-1, -1}, {7, 0}, {7, -1}}) {
    request.session_id = session;
    request.session_epoch = epoch;
    EXPECT_EQ(h.records(h.ask(request, 11)).size(), 1u) << session << ' ' << epoch;
  }
  for (const int session : {0, 7}) {
    request.session_id = session;
    request.session_epoch = 3;
    EXPECT_EQ(h.ask(request, 11).error_code, ErrorCode::kFetchSessionIdNotFound);
  }
}

TEST(Core, AThrottledFetchNamesNoPartitionAndMutes) {
  CoreHarness h({"quota.consumer.default=1000"});
  h.create("t");
  for (int i = 0; i < 30; ++i) h.ask(h.produce("t", h.batch({std::string(5000, 'x')})), 9);
  RequestId last{};
  for (int i = 0; i < 30; ++i) last = h.send(h.fetch("t", i), 11);
  const auto* response = h.answer<FetchResponse>(last);
  ASSERT_NE(response, nullptr);
  EXPECT_GT(response->throttle_time_ms, 0);
  EXPECT_GT(h.replies[last].mute, Duration::zero());
  EXPECT_EQ(response->error_code, ErrorCode::kNone);
  EXPECT_TRUE(response->responses.empty());
}

TEST(Core, AClientOfAnInvalidNameIsToldSo) {
  CoreHarness h;
  for (const char* name : {"", "-kcat", "a b", "kcat."}) {
    const auto* response = h.answer<protocol::ApiVersionsResponse>(
        h.send(protocol::ApiVersionsRequest{.client_software_name = name, .client_software_version = "1.0"}, 3));
    ASSERT_NE(response, nullptr);
    EXPECT_EQ(response->error_code, ErrorCode::kInvalidRequest) << name;
    EXPECT_TRUE(response->api_keys.empty()) << name;
  }
  const auto* response = h.answer<protocol::ApiVersionsResponse>(
      h.send(protocol::ApiVersionsRequest{.client_software_name = "k.c-at", .client_software_version = "1"}, 3));
  ASSERT_NE(response, nullptr);
  EXPECT_EQ(response->error_code, ErrorCode::kNone);
}

TEST(Core, OffsetsOutOfRangeAndUnknownTopicsAreErrors) {
  CoreHarness h;
  h.create("t");
  EXPECT_EQ(h.only(h.ask(h.fetch("t", 5, 100), 11)).error_code, ErrorCode::kOffsetOutOfRange);
  EXPECT_EQ(h.only(h.ask(h.fetch("nope", 0, 100), 11)).error_code, ErrorCode::kUnknownTopicOrPartition);
  EXPECT_EQ(h.only(h.ask(h.produce("nope", h.batch({"a"})), 9)).error_code, ErrorCode::kUnknownTopicOrPartition);
}

TEST(Core, RefusesBadBatches) {
  CoreHarness h({"message.max.bytes=2000"});
  h.create("t");
  auto damaged = h.batch({"abc"});
  damaged[damaged.size() - 2] ^= std::byte{1};
  EXPECT_EQ(h.only(h.ask(h.produce("t", damaged), 9)).error_code, ErrorCode::kCorruptMessage);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({std::string(3000, 'x')})), 9)).error_code,
            ErrorCode::kMessageTooLarge);
  auto two = h.batch({"a"});
  const auto more = h.batch({"b"});
  two.insert(two.end(), more.begin(), more.end());
  EXPECT_EQ(h.only(h.ask(h.produce("t", two), 9)).error_code, ErrorCode::kInvalidRecord);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"a"}, {.transactional = true,
                                                        .producer_id = ProducerId(1),
                                                        .producer_epoch = 0,
                                                        .base_sequence = 0})),
                         9))
                .error_code,
            ErrorCode::kInvalidTxnState);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"a"}), 3), 9)).error_code, ErrorCode::kInvalidRequiredAcks);
  h.clock.step_wall(std::chrono::hours(-3));
  wire::BatchBuilder future;
  future.add(h.now_ms() + 3LL * 3600 * 1000, std::nullopt, as_bytes("x"));
  EXPECT_EQ(h.only(h.ask(h.produce("t", future.build()), 9)).error_code, ErrorCode::kInvalidTimestamp);
  EXPECT_EQ(h.only(h.ask(h.fetch("t", 0), 11)).high_watermark, 0) << "nothing of that was stored";
}

TEST(Core, AcksZeroIsNotAnsweredAndAFailureCloses) {
  CoreHarness h;
  h.create("t");
  const auto ok = h.send(h.produce("t", h.batch({"a"}), 0), 9);
  EXPECT_TRUE(h.dropped.contains(ok));
  h.send(h.produce("nope", h.batch({"a"}), 0), 9);
  EXPECT_EQ(h.closed.size(), 1u);
}

TEST(Core, ARepeatedIdempotentBatchGetsItsFirstOffsetAlsoAfterACrash) {
  CoreHarness h;
  h.create("t");
  const auto init = h.ask(protocol::InitProducerIdRequest{.transaction_timeout_ms = 60000}, 4);
  ASSERT_EQ(init.error_code, ErrorCode::kNone);
  const auto batch = [&](std::int32_t sequence) {
    return h.batch({"a", "b"}, {.producer_id = ProducerId(init.producer_id),
                                .producer_epoch = init.producer_epoch,
                                .base_sequence = sequence});
  };
  EXPECT_EQ(h.only(h.ask(h.produce("t", batch(0)), 9)).base_offset, 0);
  EXPECT_EQ(h.only(h.ask(h.produce("t", batch(2)), 9)).base_offset, 2);
  EXPECT_EQ(h.only(h.ask(h.produce("t", batch(0)), 9)).base_offset, 0);
  EXPECT_EQ(h.only(h.ask(h.produce("t", batch(8)), 9)).error_code, ErrorCode::kOutOfOrderSequenceNumber);
  h.crash(7);
  EXPECT_EQ(h.only(h.ask(h.produce("t", batch(2)), 9)).base_offset, 2);
  EXPECT_EQ(h.only(h.ask(h.produce("t", batch(4)), 9)).base_offset, 4);
  const auto next = h.ask(protocol::InitProducerIdRequest{.transaction_timeout_ms = 60000}, 4);
  EXPECT_GT(next.producer_id, init.producer_id) << "producer ids are never reused";
}

TEST(Core, AFailedFsyncMakesThePartitionReadOnlyAndSaysSo) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"kept"})), 9);
  const auto lost = h.send(h.produce("t", h.batch({"lost"})), 9);
  h.files.fail_sync(1, ".log");
  h.run_syncs();
  h.files.fail_sync(0);
  ASSERT_NE(h.answer<ProduceResponse>(lost), nullptr);
  EXPECT_EQ(h.only(*h.answer<ProduceResponse>(lost)).error_code, ErrorCode::kKafkaStorageError);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"later"})), 9)).error_code, ErrorCode::kKafkaStorageError);
  EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)), (Records{{0, "kept"}}));
  h.crash(3);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"again"})), 9)).error_code, ErrorCode::kNone);
}

TEST(Core, AFullDiskIsARetriableErrorAndPasses) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"first"})), 9);
  h.files.set_free_space(10);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"no room"})), 9)).error_code, ErrorCode::kKafkaStorageError);
  EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)), (Records{{0, "first"}}));
  EXPECT_EQ(h.core->counts().refused_appends, 1u);
  h.files.set_free_space(std::nullopt);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"room"})), 9)).base_offset, 1);
}

TEST(Core, OffsetsOfManyGroupsAreShownWhenAllOfThemAreDurable) {
  CoreHarness h;
  h.create("t");
  ASSERT_NE(h.core->group_partition("a"), h.core->group_partition("b"));
  protocol::OffsetFetchRequest both;
  for (const std::int64_t offset : {7, 8}) {
    h.run_syncs();
    for (const char* group : {"a", "b"}) {
      protocol::OffsetCommitRequest commit{.group_id = group, .generation_id_or_member_epoch = -1};
      commit.topics.push_back({"t", {}, {{0, offset, -1, ""}}});
      h.send(commit, 7);
    }
  }
  for (const char* group : {"a", "b"}) both.groups.push_back({group, {}, -1, std::nullopt});
  const auto id = h.send(both, 8);
  ASSERT_EQ(h.syncs.size(), 2u);
  h.run_one_sync();
  EXPECT_EQ(h.answer<protocol::OffsetFetchResponse>(id), nullptr)
      << "a crash could take back what it shows of the other";
  h.run_syncs();
  const auto* answer = h.answer<protocol::OffsetFetchResponse>(id);
  ASSERT_NE(answer, nullptr);
  for (const auto& group : answer->groups) EXPECT_EQ(group.topics.at(0).partitions.at(0).committed_offset, 8);
}

TEST(Core, AClientThatGoesAwayIsForgotten) {
  CoreHarness h;
  h.create("t");
  const auto id = h.send(h.fetch("t", 0, 500), 11, "reader", 9);
  h.take(h.core->disconnected(h.clock.now(), ConnectionId(9)));
  h.ask(h.produce("t", h.batch({"a"})), 9);
  h.advance(std::chrono::seconds(1));
  EXPECT_EQ(h.answer<FetchResponse>(id), nullptr);
}

// Whatever was acknowledged is there after any crash, at its offset; whatever a consumer was shown stays; nothing
// appears that was not produced. Seeded interleavings of produces, fsyncs, fetches and power cuts.
TEST(Core, ConservesRecordsAcrossCrashes) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    CoreHarness h({"log.segment.bytes=700"});
    h.create("t");
    std::map<std::int64_t, std::string> acked, shown;
    std::map<RequestId, std::string> open;
    std::set<std::string> produced;
    const auto collect = [&] {
      for (auto it = open.begin(); it != open.end();) {
        const auto* response = h.answer<ProduceResponse>(it->first);
        if (response == nullptr) {
          ++it;
          continue;
        }
        EXPECT_EQ(h.only(*response).error_code, ErrorCode::kNone);
        acked[h.only(*response).base_offset] = it->second;
        it = open.erase(it);
      }
    };
    const auto look = [&] {
      for (std::int64_t at = 0;;) {
        const auto records = h.records(h.ask(h.fetch("t", at), 11));
        if (records.empty()) break;
        for (const auto& [offset, value] : records) {
          if (offset < at) continue;
          EXPECT_TRUE(produced.contains(value));
          const auto [it, fresh] = shown.emplace(offset, value);
          EXPECT_EQ(it->second, value) << "offset " << offset;
        }
        at = records.back().first + 1;
      }
    };
    for (int step = 0; step < 60; ++step) {
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const std::string value = std::to_string(seed) + "-" + std::to_string(step);
          produced.insert(value);
          open[h.send(h.produce("t", h.batch({value})), 9)] = value;
          break;
        }
        case 4:
        case 5: h.run_one_sync(); break;
        case 6: {
          const auto id = h.send(h.fetch("t", static_cast<std::int64_t>(shown.size())), 11);
          const auto* response = h.answer<FetchResponse>(id);
          ASSERT_NE(response, nullptr);
          for (const auto& [offset, value] : h.records(*response)) shown.emplace(offset, value);
          break;
        }
        default:
          if (random() % 4 == 0) {
            collect();
            h.crash(random());
            open.clear();
          }
          break;
      }
      collect();
    }
    h.crash(random());
    const auto before = shown;
    shown.clear();
    look();
    for (const auto& [offset, value] : acked)
      EXPECT_EQ(shown[offset], value) << "acknowledged and lost: offset " << offset;
    for (const auto& [offset, value] : before) EXPECT_EQ(shown[offset], value) << "shown and lost: offset " << offset;
  }
}

TEST(Core, ListsOffsetsOfTimesUpToTheHighWatermark) {
  CoreHarness h;
  h.create("t");
  const auto first = h.now_ms();
  h.ask(h.produce("t", h.batch({"a"})), 9);
  h.advance(milliseconds(1000));
  h.ask(h.produce("t", h.batch({"b"})), 9);
  h.advance(milliseconds(1000));
  h.send(h.produce("t", h.batch({"not yet durable"})), 9);
  const auto offset_of = [&](std::int64_t timestamp) {
    protocol::ListOffsetsRequest request{.replica_id = -1};
    request.topics.push_back({.name = "t"});
    request.topics[0].partitions.push_back({.partition_index = 0, .timestamp = timestamp});
    const auto id = h.send(request, 7);
    const auto* response = h.answer<protocol::ListOffsetsResponse>(id);
    return response == nullptr ? -99 : response->topics.at(0).partitions.at(0).offset;
  };
  EXPECT_EQ(offset_of(-1), 2);
  EXPECT_EQ(offset_of(-2), 0);
  EXPECT_EQ(offset_of(first), 0);
  EXPECT_EQ(offset_of(first + 1), 1);
  EXPECT_EQ(offset_of(first + 2000), -1);
  h.run_syncs();
  EXPECT_EQ(offset_of(-1), 3);
  EXPECT_EQ(offset_of(-3), 2);
  protocol::ListOffsetsRequest twice{.replica_id = -1};
  twice.topics.push_back({.name = "t"});
  twice.topics[0].partitions.assign(2, {.partition_index = 0, .timestamp = -1});
  const auto answer = h.ask(twice, 7).topics.at(0);
  for (const auto& partition : answer.partitions) EXPECT_EQ(partition.error_code, ErrorCode::kInvalidRequest);
}

TEST(Core, WhatARequestNamesTwiceIsShownOnce) {
  CoreHarness h;
  h.create("t", 3);
  protocol::MetadataRequest metadata;
  metadata.topics.emplace() = {{.name = "t"}, {.name = "t"}, {.name = "u"}, {.name = "u"}};
  metadata.allow_auto_topic_creation = false;
  EXPECT_EQ(h.ask(metadata, 9).topics.size(), 2u);
  const auto id = h.core->topics().find("t")->id;
  metadata.topics.emplace() = {{.topic_id = id}, {.topic_id = id}};
  EXPECT_EQ(h.ask(metadata, 12).topics.size(), 1u);
  protocol::DescribeConfigsRequest configs;
  configs.resources = {{.resource_type = 2, .resource_name = "t"}, {.resource_type = 2, .resource_name = "t"}};
  EXPECT_EQ(h.ask(configs, 4).results.size(), 1u);
  EXPECT_EQ(h.ask(protocol::DescribeGroupsRequest{.groups = {"g", "g"}}, 5).groups.size(), 1u);
  EXPECT_EQ(h.ask(protocol::OffsetFetchRequest{.groups = {{.group_id = "g"}, {.group_id = "g"}}}, 8).groups.size(), 1u);
}

TEST(Core, ApiVersionsFollowsTheTable) {
  CoreHarness h;
  const auto response =
      h.ask(protocol::ApiVersionsRequest{.client_software_name = "c", .client_software_version = "1"}, 3);
  EXPECT_EQ(response.api_keys.size(), apis().size());
  EXPECT_EQ(response.api_keys.front().min_version, 0) << "Produce is advertised from 0";
  EXPECT_EQ(find_api(0)->served.first, 3);
  Request future{.id = RequestId(1000000), .connection = ConnectionId(1), .api_key = 18, .version = 0};
  h.take(h.core->handle(h.clock.now(), future));
  EXPECT_EQ(h.answer<protocol::ApiVersionsResponse>(RequestId(1000000))->error_code, ErrorCode::kUnsupportedVersion);
}

}  // namespace
}  // namespace weir::broker
