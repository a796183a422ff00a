#include "client/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "client/directive_feed.h"
#include "http/directives.h"
#include "http/server.h"
#include "protocol/codec.h"
#include "protocol/messages/10_find_coordinator.h"
#include "protocol/messages/16_list_groups.h"
#include "protocol/messages/18_api_versions.h"
#include "protocol/messages/2_list_offsets.h"
#include "protocol/messages/3_metadata.h"
#include "protocol/messages/9_offset_fetch.h"
#include "runtime/event_loop.h"
#include "runtime/frame_reader.h"
#include "runtime/tcp.h"

namespace weir::client {
namespace {

using namespace protocol;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

using Answer = std::function<std::optional<Payload>(RequestFrame&)>;

/// A broker of a few lines: `answer` says what goes back, nothing means it hangs.
class FakeBroker {
 public:
  explicit FakeBroker(Answer answer) : answer_(std::move(answer)) {
    listener_ = std::move(*runtime::listen(loop_, {"127.0.0.1", 0}, [this](std::shared_ptr<runtime::Connection> c) {
      c->start(std::make_shared<Owner>(*this, c));
    }));
    loop_.start();
  }
  ~FakeBroker() { stop(); }
  void stop() {
    loop_.stop();
    loop_.join();
  }
  runtime::Address address() const { return listener_->address(); }

 private:
  struct Owner final : runtime::ConnectionOwner {
    Owner(FakeBroker& broker, std::shared_ptr<runtime::Connection> c) : broker(broker), connection(std::move(c)) {}
    std::span<std::byte> read_buffer() override { return frames.space(); }
    void received(Bytes n) override {
      frames.received(n);
      while (auto frame = *frames.next()) {
        auto request = *open_request(std::move(*frame));
        if (auto out = broker.answer_(request)) connection->send(std::move(*out));
      }
    }
    void closed(const Error&) override { connection.reset(); }
    FakeBroker& broker;
    std::shared_ptr<runtime::Connection> connection;
    runtime::FrameReader frames{kMiB};
  };

  Answer answer_;
  runtime::EventLoop loop_{"broker"};
  std::unique_ptr<runtime::Listener> listener_;
};

template <typename M>
std::optional<Payload> reply(const RequestFrame& request, const M& message) {
  return encode_response(request.header.correlation_id, message, request.header.request_api_version);
}

std::optional<Payload> versions(const RequestFrame& request, std::int16_t offset_fetch = 9) {
  ApiVersionsResponse response;
  response.api_keys = {{0, 0, 13}, {2, 1, 11}, {3, 0, 13}, {9, 1, offset_fetch}, {10, 0, 6}, {16, 0, 5}, {18, 0, 4}};
  return reply(request, response);
}

/// Two brokers: the first leads and coordinates what ends in 1, the second the rest; it may hang.
struct TwoBrokers : testing::Test {
  // Each answers with the other's address, so none may go while the other still serves.
  ~TwoBrokers() override {
    first.stop();
    second.stop();
  }

  std::optional<Payload> answer(RequestFrame& request, int node) {
    if (node == 2 && second_is_silent) return std::nullopt;
    if (request.header.request_api_key == 18) return versions(request, offset_fetch);
    if (node == 2 && second_hangs) return std::nullopt;
    const int version = request.header.request_api_version;
    switch (static_cast<ApiKey>(request.header.request_api_key)) {
      case ApiKey::kMetadata: {
        MetadataResponse r{.brokers = {{1, "127.0.0.1", first.address().port}, {2, "127.0.0.1", second.address().port}},
                           .cluster_id = "abc"};
        const auto asked = *decode<MetadataRequest>(request.body, version);
        for (const auto& topic : asked.topics.value_or(std::vector<MetadataRequest::MetadataRequestTopic>{})) {
          const bool here = topic.name->ends_with("1");
          r.topics.push_back({.name = topic.name, .partitions = {{.leader_id = here ? 1 : 2}}});
        }
        return reply(request, r);
      }
      case ApiKey::kFindCoordinator: {
        FindCoordinatorResponse r;
        const auto asked = *decode<FindCoordinatorRequest>(request.body, version);
        for (const auto& key : asked.coordinator_keys) {
          const bool here = key.ends_with("1");
          r.coordinators.push_back({key, here ? 1 : 2, "127.0.0.1", (here ? first : second).address().port});
        }
        return reply(request, r);
      }
      case ApiKey::kOffsetFetch: {
        ++offset_fetches;
        const auto asked = *decode<OffsetFetchRequest>(request.body, version);
        OffsetFetchResponse r;
        const ErrorCode error = offset_fetches <= moves ? ErrorCode::kNotCoordinator : ErrorCode::kNone;
        if (version < 8) r.topics = {{"t1", {{.partition_index = 0, .committed_offset = 7}}}};
        for (const auto& group : asked.groups) {
          r.groups.push_back({group.group_id, {{.name = "t1", .partitions = {{0, 7}, {1, -1}}}}, error});
        }
        return reply(request, r);
      }
      case ApiKey::kListOffsets: {
        ListOffsetsResponse r;
        const auto asked = *decode<ListOffsetsRequest>(request.body, version);
        for (const auto& topic : asked.topics) {
          r.topics.push_back({topic.name, {{.partition_index = 0, .offset = 100}}});
        }
        return reply(request, r);
      }
      case ApiKey::kListGroups:
        return reply(request, ListGroupsResponse{.groups = {{"g" + std::to_string(node), "consumer", "Stable"}}});
      default: return std::nullopt;
    }
  }

  std::atomic<bool> second_hangs = false;
  std::atomic<bool> second_is_silent = false;
  std::atomic<int> offset_fetches = 0;
  std::atomic<int> moves = 0;
  std::atomic<std::int16_t> offset_fetch = 9;
  FakeBroker first{[this](RequestFrame& r) { return answer(r, 1); }};
  FakeBroker second{[this](RequestFrame& r) { return answer(r, 2); }};
  Admin admin{{.bootstrap = first.address().text()}};
};

TEST_F(TwoBrokers, ManyGroupsTakeOneRequestPerCoordinator) {
  const auto got = admin.committed({"a1", "b1", "c1", "a2", "b2"});
  EXPECT_EQ(got.size(), 5u);
  EXPECT_EQ(offset_fetches, 2);
  const Committed expected{{{"t1", PartitionId(0)}, Offset(7)}};  // -1 is no commit.
  EXPECT_EQ(*got.at("b2"), expected);
}

TEST_F(TwoBrokers, AnOldBrokerIsAskedGroupByGroup) {
  offset_fetch = 5;
  const auto got = admin.committed({"a1", "b1"});
  EXPECT_EQ(offset_fetches, 2);
  EXPECT_EQ(got.at("b1")->size(), 1u);
}

TEST_F(TwoBrokers, AHungBrokerCostsItsDeadlineAndNamesItselfWhileOthersAnswer) {
  ASSERT_TRUE(admin.cluster());
  second_hangs = true;
  admin.set_timeout(milliseconds(150));
  const auto before = system_clock().now().mono;
  const auto got = admin.committed({"a1", "a2"});
  EXPECT_LT(system_clock().now().mono - before, seconds(2));
  EXPECT_TRUE(got.at("a1"));
  EXPECT_EQ(got.at("a2").error().kind, ErrorKind::kTimeout);
  EXPECT_THAT(got.at("a2").error().message, HasSubstr(second.address().text()));

  const auto groups = admin.list_groups();
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->groups.size(), 1u);
  EXPECT_EQ(groups->failed.size(), 1u);

  const auto offsets = admin.list_offsets({{"t1", PartitionId(0)}, {"t2", PartitionId(0)}}, OffsetSpec::kLatest);
  EXPECT_EQ(offsets.at({"t1", PartitionId(0)}), Offset(100));
  EXPECT_EQ(offsets.at({"t2", PartitionId(0)}).error().kind, ErrorKind::kTimeout);

  second_hangs = false;  // The connection is made anew.
  admin.set_timeout(seconds(5));
  EXPECT_TRUE(admin.committed({"a2"}).at("a2"));
}

TEST_F(TwoBrokers, ABrokerThatAcceptsAndNeverAnswersLeavesTimeForTheOthersAndIsNotWaitedForAgain) {
  second_is_silent = true;
  admin.set_timeout(milliseconds(300));
  auto got = admin.committed({"a1", "a2"});
  EXPECT_TRUE(got.at("a1")) << got.at("a1").error().message;
  EXPECT_EQ(got.at("a2").error().kind, ErrorKind::kTimeout);
  const auto before = system_clock().now().mono;
  got = admin.committed({"a1", "a2"});
  EXPECT_LT(system_clock().now().mono - before, milliseconds(140));
  EXPECT_TRUE(got.at("a1"));
  EXPECT_THAT(got.at("a2").error().message, HasSubstr(second.address().text()));
}

TEST_F(TwoBrokers, AMovedCoordinatorIsAskedAgain) {
  moves = 2;
  EXPECT_TRUE(admin.committed({"a1"}).at("a1"));
  EXPECT_EQ(offset_fetches, 3);
}

TEST_F(TwoBrokers, InterruptEndsAWaitingCall) {
  ASSERT_TRUE(admin.cluster());
  second_hangs = true;
  std::thread other([this] { admin.interrupt(); });
  EXPECT_EQ(admin.committed({"a2"}).at("a2").error().kind, ErrorKind::kClosed);
  other.join();
}

TEST(Admin, WhatIsNotKafkaIsSaidSo) {
  http::Server web({});
  const auto address = *web.start();
  Admin admin({.bootstrap = address.text(), .timeout = seconds(1)});
  const auto cluster = admin.cluster();
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().message, HasSubstr(address.text()));
}

TEST(Admin, FallsBackToTheOldestApiVersions) {
  FakeBroker old([](RequestFrame& request) -> std::optional<Payload> {
    ApiVersionsResponse response;
    if (request.header.request_api_version > 0) {
      response.error_code = ErrorCode::kUnsupportedVersion;
      return encode_response(request.header.correlation_id, response, 0);
    }
    response.api_keys = {{18, 0, 0}};
    return reply(request, response);
  });
  Admin admin({.bootstrap = old.address().text()});
  const auto cluster = admin.cluster();  // Negotiated; the only thing missing is Metadata.
  EXPECT_EQ(cluster.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(cluster.error().message, HasSubstr("does not serve Metadata"));
}

TEST(DirectiveFeed, PassesOnWhatTheGuardSaysAndTakesBackWhatItNoLongerSays) {
  std::atomic<bool> paused = true;
  http::Server guard({});
  guard.route("GET", "/api/directives", [&](const http::Request& request) {
    EXPECT_EQ(request.query.at("topics"), "logs,logs_error");
    EXPECT_EQ(request.query.at("laws"), "false");
    const MonoTime now = system_clock().now().mono;
    std::vector<Directive> list;
    if (paused) list.push_back({.scope = {.topic = "logs"}, .pause = true, .expires = now + seconds(10)});
    return http::Response{.body = http::directives_to_json(list, now)};
  });
  const auto address = *guard.start();
  std::atomic<int> active = 0;
  std::atomic<int> taken_back = 0;
  DirectiveFeed feed({.guard = address,
                      .client_id = "a b",
                      .topics = {"logs", "logs_error"},
                      .laws = false,
                      .period = milliseconds(2)},
                     [&](const Directive& d) { ++(d.active(system_clock().now().mono) ? active : taken_back); });
  feed.start();
  while (active == 0) std::this_thread::yield();
  paused = false;
  while (taken_back == 0) std::this_thread::yield();
  feed.stop();
  EXPECT_EQ(taken_back, 1);
}

}  // namespace
}  // namespace weir::client
