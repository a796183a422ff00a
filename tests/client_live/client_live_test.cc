// Producer and Consumer over librdkafka against the broker at WEIR_TEST_BOOTSTRAP. Waits on conditions, not on the
// clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/clock.h"
#include "client/admin.h"
#include "client/kafka_settings.h"
#include "client/raw.h"
#include "weir/consumer.h"
#include "weir/producer.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

std::string bootstrap;

std::string fresh(const std::string& name) {
  static std::random_device device;
  return name + "-" + std::to_string(device());
}

ProducerSettings producing() {
  ProducerSettings settings;
  settings.bootstrap_servers = bootstrap;
  return settings;
}

ConsumerSettings consuming(const std::string& topic, const std::string& group) {
  ConsumerSettings settings;
  settings.bootstrap_servers = bootstrap;
  settings.group_id = group;
  settings.topics = {topic};
  return settings;
}

void fill(const std::string& topic, int count, std::size_t size = 100) {
  auto producer = Producer::open(producing());
  ASSERT_TRUE(producer.has_value()) << producer.error().message;
  for (int i = 0; i < count; ++i) {
    std::string value = std::to_string(i);
    value.resize(std::max(size, value.size()), ' ');
    ASSERT_TRUE((*producer)->send(Record{.topic = topic, .value = std::move(value)}).accepted());
  }
  ASSERT_EQ((*producer)->close(30s), 0u);
}

/// Polls until `enough`, or fails after a minute.
template <typename Enough, typename Each>
void read_until(Consumer& consumer, Enough enough, Each each) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!enough()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "nothing more came";
    auto batch = consumer.poll(200ms);
    ASSERT_TRUE(batch.has_value()) << batch.error().message;
    for (auto& record : *batch) each(record);
  }
}

TEST(ClientLive, EveryRecordIsAckedReadAndCommitted) {
  const std::string topic = fresh("live");
  constexpr int kCount = 50'000;
  auto settings = producing();
  settings.buffer_records = 1000;  // the application never polls and still gets its room back
  settings.compression = "snappy";
  auto producer = Producer::open(settings);
  ASSERT_TRUE(producer.has_value()) << producer.error().message;
  std::atomic<int> acked = 0;
  for (int i = 0; i < kCount; ++i) {
    Record record{.topic = topic,
                  .key = std::to_string(i % 64),
                  .value = std::to_string(i),
                  .headers = {{"weir.pos", std::to_string(i)}, {"null", {}}}};
    ASSERT_TRUE((*producer)
                    ->send(std::move(record),
                           [&](Delivery& d) { acked += d.status == Delivery::Status::kAcked && d.offset.value >= 0; })
                    .accepted());
  }
  EXPECT_EQ((*producer)->flush(30s), 0u);
  EXPECT_EQ(acked, kCount);
  EXPECT_LE((*producer)->stats().peak_buffer_bytes, settings.buffer_memory);

  auto consumer = Consumer::open(consuming(topic, fresh("g")));
  ASSERT_TRUE(consumer.has_value()) << consumer.error().message;
  std::map<std::string, int> last_of_key;
  std::set<int> seen;
  read_until(
      **consumer, [&] { return seen.size() == kCount; },
      [&](ConsumedRecord& record) {
        const int i = std::stoi(*record.value);
        EXPECT_TRUE(seen.insert(i).second) << "twice: " << i;
        ASSERT_EQ(record.headers.size(), 2u);
        EXPECT_EQ(record.headers[0].value, *record.value);
        EXPECT_EQ(record.headers[1].value, std::nullopt);
        auto [at, first] = last_of_key.try_emplace(*record.key, i);
        EXPECT_TRUE(first || at->second < i) << "out of order";
        at->second = i;
        (*consumer)->finish(record);
      });
  (*consumer)->commit_finished();
  EXPECT_TRUE((*consumer)->flush_commits(10s).has_value());
  const auto stats = (*consumer)->stats();
  for (const auto& [partition, one] : stats.partitions) {
    EXPECT_EQ(one.lag, 0) << partition.partition.value;
    if (one.position.value > 0) {
      EXPECT_EQ(one.committed, one.position);
    }
  }
  EXPECT_TRUE((*consumer)->close(10s));
  EXPECT_EQ((*producer)->close(10s), 0u);
}

TEST(ClientLive, CloseDoesNotWaitForTheLinger) {
  auto settings = producing();
  settings.linger = 60s;
  auto producer = Producer::open(settings);
  ASSERT_TRUE(producer.has_value());
  const std::string topic = fresh("linger");
  for (int i = 0; i < 436; ++i) (*producer)->send(Record{.topic = topic, .value = "x"});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ((*producer)->close(20s), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
  EXPECT_EQ((*producer)->stats().acked, 436u);
}

TEST(ClientLive, WithoutABrokerTheRestIsReportedAtTheDeadline) {
  auto settings = producing();
  settings.bootstrap_servers = "127.0.0.1:1";
  auto producer = Producer::open(settings);
  ASSERT_TRUE(producer.has_value());
  std::atomic<int> undelivered = 0;
  for (int i = 0; i < 100; ++i)
    (*producer)->send(Record{.topic = "t", .value = "x"},
                      [&](Delivery& d) { undelivered += d.status == Delivery::Status::kUndelivered; });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ((*producer)->close(500ms), 100u);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(undelivered, 100);
}

TEST(ClientLive, AHeldPartitionIsReadOnWithoutLossAfterRelease) {
  const std::string topic = fresh("hold");
  fill(topic, 30'000);
  auto settings = consuming(topic, fresh("g"));
  settings.high_watermark = 1000;
  settings.low_watermark = 500;
  auto consumer = Consumer::open(settings);
  ASSERT_TRUE(consumer.has_value());
  std::set<std::pair<int, std::int64_t>> seen;
  std::deque<ConsumedRecord> queue;
  const auto began = std::chrono::steady_clock::now();
  const auto until = began + 60s;
  while (seen.size() < 30'000 && std::chrono::steady_clock::now() < until) {
    auto batch = (*consumer)->poll(5ms);
    ASSERT_TRUE(batch.has_value()) << batch.error().message;
    for (auto& record : *batch) {
      EXPECT_TRUE(seen.insert({record.partition.partition.value, record.offset.value}).second);
      queue.push_back(std::move(record));
    }
    for (int i = 0; i < 200 && !queue.empty(); ++i, queue.pop_front())
      (*consumer)->finish(queue.front());  // slower than reading
  }
  EXPECT_EQ(seen.size(), 30'000u);
  std::printf("30,000 records on the watermark in %.2f s, held %llu times\n",
              to_seconds(std::chrono::steady_clock::now() - began),
              static_cast<unsigned long long>((*consumer)->stats().holds));
  EXPECT_TRUE((*consumer)->close(10s));
}

// Field case: a pause longer than max.poll.interval.ms threw the member out of its group.
TEST(ClientLive, AnApplicationThatTakesItsTimeStaysInItsGroup) {
  const std::string topic = fresh("slow");
  fill(topic, 10);
  auto settings = consuming(topic, fresh("g"));
  settings.max_poll_records = 5;
  settings.session_timeout = 6s;
  settings.heartbeat_interval = 2s;
  settings.max_poll_interval = 7s;
  auto consumer = Consumer::open(settings);
  ASSERT_TRUE(consumer.has_value()) << consumer.error().message;
  std::vector<ConsumedRecord> read;
  const auto keep = [&](ConsumedRecord& record) { read.push_back(record); };
  read_until(**consumer, [&] { return !read.empty(); }, keep);
  std::this_thread::sleep_for(9s);  // the time itself is what is tested
  for (const auto& record : read) (*consumer)->finish(record);
  (*consumer)->commit_finished();
  EXPECT_TRUE((*consumer)->flush_commits(10s));
  EXPECT_EQ((*consumer)->stats().fenced, 0u);
  const auto rebalances = (*consumer)->stats().rebalances;
  read_until(**consumer, [&] { return read.size() >= 10; }, keep);
  EXPECT_EQ(read.size(), 10u);
  EXPECT_EQ((*consumer)->stats().rebalances, rebalances);
  EXPECT_EQ(rebalances, 1u);
  (*consumer)->close(10s);
}

// Field case: a reader whose fetch size is below a stored batch asked for the same offset for ever.
TEST(ClientLive, ABatchAboveTheFetchSizeIsReadAndPassed) {
  const std::string topic = fresh("large");
  fill(topic, 5);
  fill(topic, 1, 300'000);
  fill(topic, 5);
  auto settings = consuming(topic, fresh("g"));
  settings.max_partition_fetch_bytes = 1024;
  auto consumer = Consumer::open(settings);
  ASSERT_TRUE(consumer.has_value()) << consumer.error().message;
  std::multiset<std::size_t> sizes;
  read_until(
      **consumer, [&] { return sizes.size() == 11; },
      [&](ConsumedRecord& record) {
        sizes.insert(record.value->size());
        (*consumer)->finish(record);
      });
  EXPECT_EQ(sizes.count(300'000), 1u);
  (*consumer)->close(10s);
}

// A batch refused as too large comes back while the ones behind it are on their way.
TEST(ClientLive, ABatchThatIsRefusedAndSentAgainInPartsKeepsTheOrder) {
  const std::string topic = fresh("order");
  client::Admin admin({.bootstrap = bootstrap, .client_id = "test", .timeout = 20s});
  auto made = admin.create_topic({.name = topic, .partitions = 2, .configs = {{"max.message.bytes", "1100"}}});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  auto settings = producing();
  settings.batch_size = 1550;  // two of 600 bytes, which are too large together, or one of 950, which is not
  auto producer = Producer::open(settings);
  ASSERT_TRUE(producer.has_value()) << producer.error().message;
  std::vector<std::string> sent;
  for (int i = 0; i < 31; ++i) {
    std::string value = std::to_string(i);
    for (const int partition : {0, 1}) {
      Record record{.topic = topic, .partition = PartitionId(partition), .value = value};
      if (partition == 0) record.value->resize(i % 3 == 0 ? 950 : 600, ' ');
      ASSERT_TRUE((*producer)->send(std::move(record)).accepted());
    }
    sent.push_back(std::move(value));
    if (i > 0) continue;
    ASSERT_EQ((*producer)->flush(60s), 0u);  // a broker takes any sequence from a producer that it does not know
  }
  EXPECT_EQ((*producer)->flush(60s), 0u);
  EXPECT_EQ((*producer)->stats().acked, 62u);
  std::map<int, std::vector<std::string>> read;
  auto consumer = Consumer::open(consuming(topic, fresh("g")));
  ASSERT_TRUE(consumer.has_value()) << consumer.error().message;
  read_until(
      **consumer, [&] { return read[0].size() + read[1].size() >= 62; },
      [&](ConsumedRecord& record) {
        read[record.partition.partition.value].push_back(record.value->substr(0, record.value->find(' ')));
      });
  EXPECT_EQ(read[0], sent);
  EXPECT_EQ(read[1], sent);
  (*consumer)->close(10s);
}

TEST(ClientLive, ARebalanceLosesNothingAndRepeatsOnlyWhatWasUnfinished) {
  const std::string topic = fresh("rebalance");
  const std::string group = fresh("g");
  fill(topic, 20'000);
  auto first = Consumer::open(consuming(topic, group));
  ASSERT_TRUE(first.has_value());
  std::set<std::pair<int, std::int64_t>> stored;
  std::size_t handled = 0;
  auto handle = [&](Consumer& consumer) {
    return [&](ConsumedRecord& record) {
      stored.insert({record.partition.partition.value, record.offset.value});
      ++handled;
      consumer.finish(record);
    };
  };
  read_until(**first, [&] { return handled >= 5000; }, handle(**first));
  auto second = Consumer::open(consuming(topic, group));
  ASSERT_TRUE(second.has_value());
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (stored.size() < 20'000 && std::chrono::steady_clock::now() < until) {
    for (auto* consumer : {first->get(), second->get()}) {
      auto batch = consumer->poll(20ms);
      ASSERT_TRUE(batch.has_value()) << batch.error().message;
      auto each = handle(*consumer);
      for (auto& record : *batch) each(record);
    }
  }
  EXPECT_EQ(stored.size(), 20'000u);
  EXPECT_EQ(handled, 20'000u);  // everything was finished before its partition moved
  EXPECT_TRUE((*second)->close(10s));
  EXPECT_TRUE((*first)->close(10s));
}

TEST(ClientLive, AStaticMemberTakesOverAtOnce) {
  const std::string topic = fresh("static");
  fill(topic, 1000);
  auto settings = consuming(topic, fresh("g"));
  settings.group_instance_id = "only";
  settings.session_timeout = 30s;
  auto reader = Consumer::open(settings);
  ASSERT_TRUE(reader.has_value());
  std::size_t seen = 0;
  read_until(
      **reader, [&] { return seen >= 1000; },
      [&](ConsumedRecord& record) {
        ++seen;
        (*reader)->finish(record);
      });
  (*reader)->close(10s);
  reader->reset();
  fill(topic, 10);
  const auto began = std::chrono::steady_clock::now();
  auto again = Consumer::open(settings);
  ASSERT_TRUE(again.has_value());
  std::size_t more = 0;
  read_until(**again, [&] { return more >= 10; }, [&](ConsumedRecord&) { ++more; });
  EXPECT_EQ(more, 10u);
  std::printf("static member back after %.2f s\n", to_seconds(std::chrono::steady_clock::now() - began));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
  EXPECT_TRUE((*again)->close(10s));
}

TEST(ClientLive, TheStoreDecidesWhereToStart) {
  const std::string topic = fresh("start");
  auto producer = Producer::open(producing());
  ASSERT_TRUE(producer.has_value());
  for (int i = 0; i < 100; ++i)
    (*producer)->send(Record{.topic = topic, .partition = PartitionId(0), .value = std::to_string(i)});
  EXPECT_EQ((*producer)->close(10s), 0u);
  ConsumerHooks hooks;
  hooks.on_assign = [](const AssignedPartition& one) -> Result<std::optional<Offset>> {
    if (one.partition.partition.value != 0) return std::optional<Offset>{};
    EXPECT_EQ(one.log_end, Offset(100));
    return std::optional(Offset(40));
  };
  auto consumer = Consumer::open(consuming(topic, fresh("g")), hooks);
  ASSERT_TRUE(consumer.has_value());
  std::vector<std::string> values;
  read_until(
      **consumer, [&] { return values.size() >= 60; },
      [&](ConsumedRecord& record) { values.push_back(*record.value); });
  EXPECT_EQ(values.front(), "40");
  EXPECT_EQ(values.size(), 60u);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE((*consumer)->close(10s));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 8s);
}

TEST(ClientLive, RawClientsServeOnlyWhenAsked) {
  const std::string topic = fresh("raw");
  int reports = 0;
  auto producer = client::RawProducer::open({{"bootstrap.servers", bootstrap}},
                                            [&](std::string_view error, Offset) { reports += error.empty(); });
  ASSERT_TRUE(producer.has_value());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE((*producer)->produce(topic, "value").value());
  }
  EXPECT_GT((*producer)->queue_length(), 0u);
  EXPECT_EQ((*producer)->flush(20s), 0u);
  EXPECT_EQ(reports, 1000);
  auto consumer = client::RawConsumer::open(
      {{"bootstrap.servers", bootstrap}, {"group.id", fresh("g")}, {"auto.offset.reset", "earliest"}}, {topic});
  ASSERT_TRUE(consumer.has_value());
  EXPECT_TRUE((*consumer)->wait_assigned(20s));
  int seen = 0;
  for (int i = 0; i < 4000 && seen < 1000; ++i) {
    auto message = (*consumer)->poll(50ms);
    ASSERT_TRUE(message.has_value()) << message.error().message;
    seen += message->has_value() && (*message)->timestamp_ms > 0;
  }
  EXPECT_EQ(seen, 1000);
  (*consumer)->close(5s);
}

}  // namespace
}  // namespace weir

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  const char* address = std::getenv("WEIR_TEST_BOOTSTRAP");
  if (address == nullptr) {
    std::puts("client_live_test: left out, WEIR_TEST_BOOTSTRAP names no broker");
    return 0;
  }
  weir::bootstrap = address;
  return RUN_ALL_TESTS();
}
