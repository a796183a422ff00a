// The loops around the core over real sockets: the bounded request queue, order, muting, strangers, the clean stop.
#include "broker/server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "broker/core_harness.h"
#include "protocol/messages/18_api_versions.h"
#include "runtime/blocking_socket.h"
#include "runtime/process.h"

namespace weir::broker {
namespace {

using runtime::BlockingSocket;
using std::chrono::seconds;

MonoTime soon() { return system_clock().now().mono + seconds(20); }

/// Holds back fsyncs of partitions until opened.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class ServerTest : public ::testing::Test {
 protected:
  void serve(std::vector<std::string> settings = {}) {
    settings.insert(settings.end(), {"log.dirs=data", "listeners=PLAINTEXT://127.0.0.1:0"});
    BrokerConfig config;
    for (const auto& setting : settings) ASSERT_TRUE(config.set(setting));
    ASSERT_TRUE(config.finish());
    auto opened = Core::open(files, std::move(config), system_clock().now());
    ASSERT_TRUE(opened) << opened.error().message;
    core = std::move(*opened);
    server = std::make_unique<Server>(*core, registry);
    auto bound = server->start();
    ASSERT_TRUE(bound) << bound.error().message;
    address = *bound;
  }
  BlockingSocket connect() { return std::move(*BlockingSocket::connect(address, soon())); }
  template <typename M>
  void send(BlockingSocket& socket, std::int32_t id, const M& message, int version) {
    const auto bytes = protocol::encode_request(id, "test", message, version).flatten().value();
    ASSERT_TRUE(socket.write(bytes, soon()));
  }
  template <typename M>
  typename M::Response receive(BlockingSocket& socket, std::int32_t id, int version) {
    auto frame = socket.read_frame(16 * kMiB, soon());
    EXPECT_TRUE(frame) << frame.error().message;
    if (!frame) return {};
    auto opened = protocol::open_response(SharedBytes(std::move(*frame)), M::kApiKey, version);
    EXPECT_TRUE(opened);
    EXPECT_EQ(opened->correlation_id, id);
    auto response = protocol::decode<typename M::Response>(opened->body, version);
    EXPECT_TRUE(response);
    return std::move(*response);
  }
  void create(BlockingSocket& socket, const std::string& topic) {
    protocol::MetadataRequest request;
    request.topics.emplace().push_back({.name = topic});
    send(socket, 1, request, 9);
    EXPECT_EQ(receive<protocol::MetadataRequest>(socket, 1, 9).topics.at(0).error_code, protocol::ErrorCode::kNone);
  }
  static ByteBuffer batch(Bytes size = 10) {
    wire::BatchBuilder builder;
    builder.add(to_unix_ms(system_clock().now().wall), std::nullopt, as_bytes(std::string(size, 'x')));
    return builder.build();
  }
  template <typename Condition>
  static bool eventually(Condition condition) {
    for (const MonoTime end = soon(); system_clock().now().mono < end; std::this_thread::yield()) {
      if (condition()) return true;
    }
    return false;
  }

  runtime::MemoryFileSystem files;
  Registry registry;
  std::unique_ptr<Core> core;
  std::unique_ptr<Server> server;
  runtime::Address address;
};

TEST_F(ServerTest, AFullRequestQueueStopsReadingAndNothingFails) {
  for (const char* threads : {"1", "2"}) {
    SCOPED_TRACE(threads);
    Gate gate;
    serve({"queued.max.requests=4", std::string("num.network.threads=") + threads});
    auto socket = connect();
    create(socket, "t");
    files.on_sync([&](const runtime::Path& path) {
      if (path.extension() == ".log" && path.parent_path().filename() == "t-0") gate.pass();
    });
    constexpr int kSent = 30;
    for (int i = 0; i < kSent; ++i) send(socket, 100 + i, CoreHarness::produce("t", batch()), 9);
    ASSERT_TRUE(eventually([&] { return server->queue().requests() == 4; }));
    auto other = connect();
    send(other, 1, protocol::ApiVersionsRequest{}, 0);  // Waits its turn too: the bound is the broker's.
    EXPECT_EQ(server->queue().requests(), 4u);
    gate.open();
    for (int i = 0; i < kSent; ++i) {
      const auto response = receive<protocol::ProduceRequest>(socket, 100 + i, 9);
      EXPECT_EQ(CoreHarness::only(response).base_offset, i);
    }
    receive<protocol::ApiVersionsRequest>(other, 1, 0);
    EXPECT_TRUE(eventually([&] { return server->queue().requests() == 0 && server->queue().bytes() == 0; }));
    files.on_sync(nullptr);
    server->stop();
    ASSERT_TRUE(core->close(system_clock().now()));
    server.reset();
    core.reset();
    ASSERT_TRUE(files.remove_all("data"));
  }
}

TEST_F(ServerTest, TheQueueIsBoundInBytesToo) {
  Gate gate;
  serve({"queued.max.request.bytes=100000"});
  auto socket = connect();
  create(socket, "t");
  files.on_sync([&](const runtime::Path& path) {
    if (path.extension() == ".log") gate.pass();
  });
  for (int i = 0; i < 10; ++i) send(socket, i, CoreHarness::produce("t", batch(30000)), 9);
  ASSERT_TRUE(eventually([&] { return server->queue().bytes() >= 100000; }));
  EXPECT_LT(server->queue().bytes(), 100000u + 31000u);
  gate.open();
  for (int i = 0; i < 10; ++i) receive<protocol::ProduceRequest>(socket, i, 9);
  files.on_sync(nullptr);
}

TEST_F(ServerTest, ASlowLogDiskDelaysRepliesWhileMemoryStaysBoundedAndNothingFails) {
  constexpr int kProducers = 4, kEach = 60;
  constexpr std::int64_t kAll = std::int64_t{kProducers} * kEach;
  constexpr Bytes kSize = 20000, kRoom = 200000;
  constexpr auto kSlow = std::chrono::milliseconds(10);
  serve({"queued.max.requests=16", "queued.max.request.bytes=200000"});
  auto reader = connect();
  create(reader, "t");
  Bytes most_bytes = 0;
  std::size_t most_requests = 0;
  files.on_sync([&](const runtime::Path& path) {
    if (path.extension() != ".log" || path.parent_path().filename() != "t-0") return;
    most_bytes = std::max(most_bytes, server->queue().bytes());
    most_requests = std::max(most_requests, server->queue().requests());
    std::this_thread::sleep_for(kSlow);
  });
  const MonoTime start = system_clock().now().mono;
  std::mutex mutex;
  std::set<std::int64_t> offsets;
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&] {
      auto socket = connect();
      // Everything is sent before the first answer is read: only the broker can hold this back.
      for (int i = 0; i < kEach; ++i) send(socket, i, CoreHarness::produce("t", batch(kSize)), 9);
      for (int i = 0; i < kEach; ++i) {
        const auto answer = CoreHarness::only(receive<protocol::ProduceRequest>(socket, i, 9));
        EXPECT_EQ(answer.error_code, protocol::ErrorCode::kNone);
        std::lock_guard lock(mutex);
        EXPECT_TRUE(offsets.insert(answer.base_offset).second);
      }
    });
  }
  for (auto& producer : producers) producer.join();
  EXPECT_GE(system_clock().now().mono - start, kSlow * (kAll * kSize / (kRoom + kSize)));
  EXPECT_EQ(offsets.size(), std::size_t{kAll});
  EXPECT_EQ(*offsets.rbegin(), kAll - 1) << "each record is in the log once";
  files.on_sync(nullptr);
  EXPECT_GT(most_bytes, kRoom / 2) << "the disk was never behind: the test shows nothing";
  EXPECT_LT(most_bytes, kRoom + kSize + 1000);
  EXPECT_LE(most_requests, 16u);
  std::int64_t next = 0;
  while (next < kAll) {
    send(reader, 5, CoreHarness::fetch("t", next), 11);
    const auto records = CoreHarness::records(receive<protocol::FetchRequest>(reader, 5, 11));
    ASSERT_FALSE(records.empty());
    for (const auto& [offset, value] : records) {
      ASSERT_EQ(offset, next++);
      ASSERT_EQ(value.size(), kSize);
    }
  }
}

TEST_F(ServerTest, LongPollsDoNotFillTheQueue) {
  serve({"queued.max.requests=2"});
  auto socket = connect();
  create(socket, "t");
  std::vector<BlockingSocket> pollers;
  for (int i = 0; i < 5; ++i) {
    pollers.push_back(connect());
    send(pollers.back(), 7, CoreHarness::fetch("t", 0, 15000), 11);
  }
  send(socket, 2, CoreHarness::produce("t", batch()), 9);
  receive<protocol::ProduceRequest>(socket, 2, 9);
  for (auto& poller : pollers)
    EXPECT_EQ(CoreHarness::records(receive<protocol::FetchRequest>(poller, 7, 11)).size(), 1u);
}

TEST_F(ServerTest, AnswersKeepTheOrderOfTheRequests) {
  Gate gate;
  serve();
  auto socket = connect();
  create(socket, "t");
  files.on_sync([&](const runtime::Path& path) {
    if (path.extension() == ".log") gate.pass();
  });
  send(socket, 1, CoreHarness::produce("t", batch()), 9);
  send(socket, 2, protocol::ApiVersionsRequest{}, 0);
  ASSERT_TRUE(eventually([&] { return server->queue().requests() == 1; }));
  gate.open();
  receive<protocol::ProduceRequest>(socket, 1, 9);
  receive<protocol::ApiVersionsRequest>(socket, 2, 0);
  files.on_sync(nullptr);
}

TEST_F(ServerTest, AnswersThatWaitForAnEarlierOneAreBound) {
  serve();
  auto socket = connect(), other = connect();
  create(socket, "t");
  send(socket, 2, CoreHarness::fetch("t", 0, 15000), 11);
  protocol::ProduceRequest large{.acks = -1};  // its answer: 30000 times that the partition is named twice
  large.topic_data.emplace_back().partition_data.resize(30000);
  for (const int id : {3, 4}) send(socket, id, large, 9);
  const auto answered = [&](int count) {
    return registry.text().find("weir_broker_requests_total{api=\"Produce\"} " + std::to_string(count)) !=
           std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return answered(1); }));
  send(other, 5, CoreHarness::produce("t", batch()), 9);
  receive<protocol::ProduceRequest>(other, 5, 9);
  EXPECT_TRUE(answered(2)) << "the second large one is not taken while the answer to the first one waits";
  EXPECT_EQ(CoreHarness::records(receive<protocol::FetchRequest>(socket, 2, 11)).size(), 1u);
  for (const int id : {3, 4}) {
    EXPECT_EQ(receive<protocol::ProduceRequest>(socket, id, 9).responses.at(0).partition_responses.size(), 30000u);
  }
}

TEST_F(ServerTest, OverQuotaIsAnsweredAtOnceAndThenNotRead) {
  serve({"quota.producer.default=10000"});
  auto socket = connect();
  create(socket, "t");
  const MonoTime start = system_clock().now().mono;
  send(socket, 2, CoreHarness::produce("t", batch(121000)), 9);
  const auto first = receive<protocol::ProduceRequest>(socket, 2, 9);
  EXPECT_GT(first.throttle_time_ms, 200);
  EXPECT_LT(system_clock().now().mono - start, std::chrono::milliseconds(first.throttle_time_ms)) << "reply, then mute";
  send(socket, 3, protocol::ApiVersionsRequest{}, 0);
  auto other = connect();  // Another connection is not affected.
  send(other, 4, protocol::ApiVersionsRequest{}, 0);
  receive<protocol::ApiVersionsRequest>(other, 4, 0);
  receive<protocol::ApiVersionsRequest>(socket, 3, 0);
  EXPECT_GE(system_clock().now().mono - start, std::chrono::milliseconds(first.throttle_time_ms));
}

TEST_F(ServerTest, StrangersAreClosedWithoutAllocating) {
  serve();
  const Bytes before = runtime::resident_bytes();
  const std::string tls("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), alert("\x15\x03\x01\x00", 4);
  const std::string unknown_api("\x00\x00\x00\x0a\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff", 14);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), tls, alert, unknown_api,
                                   std::string("\x7f\xff\xff\xff", 4)}) {
    for (int i = 0; i < 20; ++i) {
      auto socket = connect();
      ASSERT_TRUE(socket.write(as_bytes(bytes), soon()));
      std::byte one[1];
      const auto got = socket.read_some(one, soon());
      EXPECT_TRUE(!got || *got == 0) << "not closed";
    }
  }
  EXPECT_LT(runtime::resident_bytes(), before + 50 * kMiB);
  auto socket = connect();
  send(socket, 1, protocol::ApiVersionsRequest{}, 0);
  EXPECT_FALSE(receive<protocol::ApiVersionsRequest>(socket, 1, 0).api_keys.empty());
}

TEST_F(ServerTest, CountsAnswersAndRecords) {
  serve();
  auto socket = connect();
  create(socket, "t");
  send(socket, 2, CoreHarness::produce("t", batch(1000)), 9);
  receive<protocol::ProduceRequest>(socket, 2, 9);
  const std::string text = registry.text();
  EXPECT_NE(text.find("weir_broker_requests_total{api=\"Produce\"} 1"), std::string::npos) << text;
  EXPECT_NE(text.find("weir_broker_produced_records_total 1"), std::string::npos);
}

TEST_F(ServerTest, AnApiVersionsRequestFromTheFutureIsAnswered) {
  serve();
  auto socket = connect();
  const std::string future("\x00\x00\x00\x0e\x00\x12\x00\x63\x00\x00\x00\x05\x00\x01\x63\x00\x01\x01", 18);
  ASSERT_TRUE(socket.write(as_bytes(future), soon()));
  const auto response = receive<protocol::ApiVersionsRequest>(socket, 5, 0);
  EXPECT_EQ(response.error_code, protocol::ErrorCode::kUnsupportedVersion);
  EXPECT_EQ(response.api_keys.at(0).api_key, 18);
}

TEST_F(ServerTest, AStopAcknowledgesWhatIsParked) {
  Gate gate;
  serve();
  auto socket = connect();
  create(socket, "t");
  files.on_sync([&](const runtime::Path& path) {
    if (path.extension() == ".log") gate.pass();
  });
  send(socket, 1, CoreHarness::produce("t", batch()), 9);
  ASSERT_TRUE(eventually([&] { return server->queue().requests() == 1; }));
  std::thread stopper([&] { server->stop(); });
  gate.open();
  EXPECT_EQ(CoreHarness::only(receive<protocol::ProduceRequest>(socket, 1, 9)).error_code, protocol::ErrorCode::kNone);
  stopper.join();
  files.on_sync(nullptr);
}

}  // namespace
}  // namespace weir::broker
