// Partitions whose leader is missing or does not answer, over librdkafka against its own mock cluster. Waits on
// conditions, not on the clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <map>
#include <memory>
#include <string>

#include "weir/consumer.h"
#include "weir/producer.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr int kHere = 1;
constexpr int kElsewhere = 2;
const TopicPartition kP0{"t", PartitionId(0)};

/// Two brokers; partition 0 and the group are with the first.
class Cluster {
 public:
  Cluster() : client_(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), nullptr, 0)) {
    mock = rd_kafka_mock_cluster_new(client_, 2);
    rd_kafka_mock_topic_create(mock, "t", 2, 1);
    rd_kafka_mock_partition_set_leader(mock, "t", 0, kHere);
    rd_kafka_mock_partition_set_leader(mock, "t", 1, kElsewhere);
    rd_kafka_mock_coordinator_set(mock, "group", "g", kHere);
  }
  ~Cluster() {
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(client_);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  std::string address() const { return rd_kafka_mock_cluster_bootstraps(mock); }

  rd_kafka_mock_cluster_t* mock = nullptr;

 private:
  rd_kafka_t* client_;
};

class LeaderTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ProducerSettings producing;
    producing.bootstrap_servers = cluster.address();
    auto producer = Producer::open(producing);
    ASSERT_TRUE(producer.has_value()) << producer.error().message;
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE((*producer)->send(Record{.topic = "t", .partition = PartitionId(i % 2), .value = "v"}).accepted());
    ASSERT_EQ((*producer)->close(30s), 0u);
  }
  void open() {
    ConsumerSettings consuming;
    consuming.bootstrap_servers = cluster.address();
    consuming.group_id = "g";
    consuming.topics = {"t"};
    consuming.passed_through = {{"partition.assignment.strategy", GetParam()}};
    auto opened = Consumer::open(consuming);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    consumer = std::move(*opened);
  }
  void read_while(auto more) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (more()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "nothing more came";
      auto batch = consumer->poll(100ms);
      ASSERT_TRUE(batch.has_value()) << batch.error().message;
      for (const auto& record : *batch) {
        auto& next = this->next[record.partition];
        ASSERT_EQ(record.offset, next);  // from the first on, none left out
        ++next;
        ++count;
      }
    }
  }

  Cluster cluster;
  std::unique_ptr<Consumer> consumer;
  std::map<TopicPartition, Offset> next;
  int count = 0;
};

TEST_P(LeaderTest, WithoutALeaderTheOthersAreReadAndItFollows) {
  rd_kafka_mock_partition_set_leader(cluster.mock, "t", 1, -1);
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_NO_FATAL_FAILURE(read_while([&] { return count < 100; }));
  EXPECT_THAT(consumer->assignment(), ElementsAre(kP0));
  rd_kafka_mock_partition_set_leader(cluster.mock, "t", 1, kHere);
  ASSERT_NO_FATAL_FAILURE(read_while([&] { return count < 200; }));
  EXPECT_TRUE(consumer->close(10s));
}

TEST_P(LeaderTest, WhileALeaderDoesNotAnswerTheOthersAreReadAndItFollows) {
  rd_kafka_mock_broker_set_down(cluster.mock, kElsewhere);
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_NO_FATAL_FAILURE(read_while([&] { return count < 100; }));
  EXPECT_THAT(consumer->assignment(), ElementsAre(kP0));
  rd_kafka_mock_broker_set_up(cluster.mock, kElsewhere);
  ASSERT_NO_FATAL_FAILURE(read_while([&] { return count < 200; }));
  EXPECT_TRUE(consumer->close(10s));
}

INSTANTIATE_TEST_SUITE_P(Assignors, LeaderTest, testing::Values("range", "cooperative-sticky"),
                         [](const auto& one) { return std::string(one.param).substr(0, 5); });

}  // namespace
}  // namespace weir
