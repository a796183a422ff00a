// For tests: a Core on one thread, in virtual time, over a file system that can crash. The test decides when fsyncs
// happen.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "broker/api_table.h"
#include "broker/core.h"
#include "protocol/codec.h"
#include "protocol/messages/0_produce.h"
#include "protocol/messages/19_create_topics.h"
#include "protocol/messages/1_fetch.h"
#include "protocol/messages/3_metadata.h"
#include "runtime/memory_file_system.h"
#include "wire/record_batch.h"

namespace weir::broker {

class CoreHarness {
 public:
  explicit CoreHarness(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
    settings_.push_back("log.dirs=data");
    start();
  }

  void start() {
    BrokerConfig config;
    for (const auto& setting : settings_) EXPECT_TRUE(config.set(setting)) << setting;
    EXPECT_TRUE(config.finish());
    auto opened = Core::open(files, std::move(config), clock.now());
    ASSERT_TRUE(opened) << opened.error().message;
    core = std::move(*opened);
    core->set_endpoint({"127.0.0.1", 9092});
  }
  void crash(std::uint64_t seed) {
    stop_here();
    files.crash(seed);
    start();
  }
  void kill() {
    stop_here();
    files.kill();
    start();
  }
  void restart() {
    run_syncs();
    EXPECT_TRUE(core->close(clock.now()));
    stop_here();
    start();
  }

  /// Sends a request as a client's bytes would arrive.
  template <typename M>
  RequestId send(const M& message, int version, const std::string& client = "test", std::uint64_t connection = 1) {
    auto bytes = protocol::encode(message, version).flatten().value();
    Request request{.id = RequestId(++last_request_),
                    .connection = ConnectionId(connection),
                    .api_key = static_cast<std::int16_t>(M::kApiKey),
                    .version = static_cast<std::int16_t>(version),
                    .client_id = client,
                    .client_host = "/127.0.0.1",
                    .size = bytes.size()};
    wire::Reader reader{SharedBytes(std::move(bytes))};
    EXPECT_TRUE(decode_request(*find_api(request.api_key), reader, request));
    const RequestId id = request.id;
    take(core->handle(clock.now(), std::move(request)));
    return id;
  }
  /// The answer, or null while there is none.
  template <typename R>
  const R* answer(RequestId id) const {
    const auto it = replies.find(id);
    return it == replies.end() ? nullptr : static_cast<const R*>(it->second.response.get());
  }
  /// Sends, lets every fsync happen, and returns the answer.
  template <typename M>
  typename M::Response ask(const M& message, int version, const std::string& client = "test") {
    const RequestId id = send(message, version, client);
    run_syncs();
    const auto* response = answer<typename M::Response>(id);
    EXPECT_NE(response, nullptr) << "no answer";
    return response != nullptr ? *response : typename M::Response{};
  }

  bool run_one_sync() {
    if (syncs.empty()) return false;
    Sync sync = std::move(syncs.front());
    syncs.pop_front();
    take(core->synced(clock.now(), sync.log, sync.work ? sync.work() : Result<void>()));
    return true;
  }
  void run_syncs() {
    while (run_one_sync()) {
    }
  }
  void advance(Duration by) {
    clock.advance(by);
    take(core->tick(clock.now()));
  }

  void create(const std::string& topic, std::int32_t partitions = 1,
              std::vector<protocol::CreateTopicsRequest::CreatableTopicConfig> configs = {}) {
    protocol::CreateTopicsRequest request;
    request.topics.push_back(
        {.name = topic, .num_partitions = partitions, .replication_factor = 1, .configs = std::move(configs)});
    const auto response = ask(request, 7);
    ASSERT_EQ(response.topics.at(0).error_code, protocol::ErrorCode::kNone)
        << response.topics.at(0).error_message.value_or("");
  }

  std::int64_t now_ms() const { return to_unix_ms(clock.now().wall); }
  ByteBuffer batch(const std::vector<std::string>& values, wire::BatchOptions options = {}) const {
    wire::BatchBuilder builder(options);
    for (const auto& value : values) builder.add(now_ms(), as_bytes("k"), as_bytes(value));
    return builder.build();
  }
  static protocol::ProduceRequest produce(const std::string& topic, ByteBuffer batch, std::int16_t acks = -1,
                                          int partition = 0) {
    protocol::ProduceRequest request{.acks = acks, .timeout_ms = 1000};
    request.topic_data.push_back({.name = topic});
    request.topic_data[0].partition_data.push_back({.index = partition, .records = SharedBytes(std::move(batch))});
    return request;
  }
  static const protocol::ProduceResponse::PartitionProduceResponse& only(const protocol::ProduceResponse& response) {
    return response.responses.at(0).partition_responses.at(0);
  }
  static protocol::FetchRequest fetch(const std::string& topic, std::int64_t offset, std::int32_t max_wait_ms = 0) {
    protocol::FetchRequest request{.max_wait_ms = max_wait_ms, .min_bytes = 1, .max_bytes = 1 << 20};
    request.topics.push_back({.topic = topic});
    request.topics[0].partitions.push_back({.partition = 0, .fetch_offset = offset, .partition_max_bytes = 1 << 20});
    return request;
  }
  static const protocol::FetchResponse::PartitionData& only(const protocol::FetchResponse& response) {
    return response.responses.at(0).partitions.at(0);
  }
  /// {offset, value} of every record in a Fetch answer.
  static std::vector<std::pair<std::int64_t, std::string>> records(const protocol::FetchResponse& response) {
    std::vector<std::pair<std::int64_t, std::string>> out;
    const auto bytes = only(response).records.value().flatten().value();
    for (ByteView rest(bytes); !rest.empty();) {
      const auto header = wire::check_batch(rest);
      EXPECT_TRUE(header) << (header ? "" : header.error().message);
      if (!header) break;
      auto reader = wire::RecordReader::open(rest, kMiB);
      while (auto record = reader->next())
        out.emplace_back(record->offset.value, std::string(as_text(record->value.value())));
      rest = rest.subspan(header->size());
    }
    return out;
  }

  runtime::MemoryFileSystem files;
  ManualClock clock;
  std::unique_ptr<Core> core;
  std::deque<Sync> syncs;
  std::map<RequestId, Reply> replies;
  std::set<RequestId> dropped;
  std::set<RequestId> long_polls;
  std::vector<CloseConnection> closed;

  void take(Effects effects) {
    for (Effect& effect : effects) {
      if (auto* reply = std::get_if<Reply>(&effect)) {
        EXPECT_FALSE(replies.contains(reply->request)) << "answered twice";
        replies[reply->request] = std::move(*reply);
      } else if (auto* none = std::get_if<NoReply>(&effect)) {
        dropped.insert(none->request);
      } else if (auto* poll = std::get_if<LongPoll>(&effect)) {
        long_polls.insert(poll->request);
      } else if (auto* close = std::get_if<CloseConnection>(&effect)) {
        closed.push_back(*close);
      } else if (auto* sync = std::get_if<Sync>(&effect)) {
        for (const Sync& other : syncs) EXPECT_NE(other.log, sync->log) << "two syncs of one log at a time";
        syncs.push_back(std::move(*sync));
      } else if (auto* chore = std::get_if<Chore>(&effect)) {
        EXPECT_TRUE(chore->work());
      }
    }
  }

 private:
  void stop_here() {
    syncs.clear();
    core.reset();
  }
  std::vector<std::string> settings_;
  std::uint64_t last_request_ = 0;
};

}  // namespace weir::broker
