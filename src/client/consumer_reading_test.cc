#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "client/consumer_world.h"
#include "client/finished_prefix.h"

namespace weir {
namespace {

using namespace testing_consumer;
using client::FinishedPrefix;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(FinishedPrefixTest, OnlyTheContiguousPartCounts) {
  FinishedPrefix prefix(Offset(10));
  EXPECT_EQ(prefix.prefix(), Offset(10));
  for (int o : {10, 11, 13, 14}) prefix.handed_out(Offset(o), 1);  // 12 is a marker
  EXPECT_TRUE(prefix.finish(Offset(11)));
  EXPECT_TRUE(prefix.finish(Offset(14)));
  EXPECT_EQ(prefix.prefix(), Offset(10));
  EXPECT_TRUE(prefix.finish(Offset(10)));
  EXPECT_EQ(prefix.prefix(), Offset(13));
  EXPECT_FALSE(prefix.finish(Offset(10)));
  EXPECT_FALSE(prefix.finish(Offset(12)));
  EXPECT_EQ(prefix.unfinished(), 1u);
  EXPECT_EQ(prefix.finish_before(Offset(100)), 1u);
  EXPECT_EQ(prefix.prefix(), Offset(15));
  EXPECT_EQ(prefix.bytes(), 0u);
}

TEST(ConsumerTest, BatchesAndCommitsOnlyByCall) {
  World w(1, 250);
  auto settings = of_group();
  settings.max_poll_records = 100;
  Member m(w.broker, settings);
  w.run({&m});
  std::vector<ConsumedRecord> all;
  for (const std::size_t expected : {100u, 100u, 50u, 0u}) {
    auto batch = m.poll();
    EXPECT_EQ(batch.size(), expected);
    m.finish(batch);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  w.run({&m}, 10s, 100ms);
  EXPECT_EQ(w.broker.committed("g", kP0), std::nullopt);
  m.consumer.commit_finished();
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(250));
  EXPECT_EQ(m.consumer.stats().partitions.at(kP0).lag, 0);
  EXPECT_TRUE(m.consumer.flush_commits(0s).has_value());
}

TEST(ConsumerTest, ACommitNeverPassesARecordThatWasNotStored) {
  World w(1, 3);
  {
    Member m(w.broker, of_group());
    w.run({&m});
    const auto batch = m.poll();
    ASSERT_EQ(batch.size(), 3u);
    m.consumer.finish(batch[0]);
    m.consumer.finish(batch[2]);
    m.consumer.commit_finished();
    w.run({&m}, 1s);
    EXPECT_EQ(w.broker.committed("g", kP0), Offset(1));
    EXPECT_EQ(m.consumer.stats().partitions.at(kP0).lag, 2);
  }
  Member again(w.broker, of_group());
  w.run({&again});
  EXPECT_THAT(offsets(again.poll_all()), ElementsAre(1, 2));
}

TEST(ConsumerTest, AHeldMemberStaysInItsGroup) {
  World w(2, 10);
  auto settings = of_group();
  settings.max_poll_interval = 11s;
  Member m(w.broker, settings);
  w.run({&m});
  const auto batch = m.poll_all();
  m.consumer.hold(kP0);
  m.consumer.hold(kP1);
  w.fill(kP0, 10);
  const auto generation = w.broker.generation("g");
  for (int i = 0; i < 200; ++i) {
    w.run({&m}, 100ms);
    ASSERT_THAT(m.poll(), IsEmpty());
  }
  EXPECT_EQ(w.broker.generation("g"), generation);
  m.consumer.release(kP0);
  m.finish(batch);
  m.finish(m.poll_all());
  m.consumer.commit_finished();
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(20));
}

TEST(ConsumerTest, AFullPartitionIsHeldAndTheOthersGoOn) {
  World w(2, 3000);
  auto settings = of_group();
  settings.max_poll_records = 100;
  Member m(w.broker, settings);
  w.run({&m});
  std::size_t p1_done = 0;
  for (int i = 0; i < 200; ++i) {
    for (const auto& record : m.poll()) {
      if (record.partition == kP0) continue;  // stuck
      m.consumer.finish(record);
      ++p1_done;
    }
    ASSERT_LE(m.consumer.stats().partitions.at(kP0).unfinished, 1000u);
  }
  EXPECT_EQ(p1_done, 3000u);
  EXPECT_TRUE(m.consumer.stats().partitions.at(kP0).held);
  EXPECT_FALSE(m.consumer.stats().partitions.at(kP1).held);
  EXPECT_EQ(m.consumer.stats().holds, 1u);
}

TEST(ConsumerTest, AHandlerThatHoldsGetsTheRestOfItsBatchLaterOnceAndInOrder) {
  World w(1, 10);
  {
    Member m(w.broker, of_group());
    w.run({&m});
    auto batch = m.poll();
    ASSERT_EQ(batch.size(), 10u);
    m.finish({batch.begin(), batch.begin() + 4});
    m.consumer.hold(kP0);
    m.consumer.give_back({batch.begin() + 4, batch.end()});
    m.consumer.commit_finished();
    w.run({&m}, 1s);
    EXPECT_THAT(m.poll(), IsEmpty());
    EXPECT_EQ(w.broker.committed("g", kP0), Offset(4));
    m.consumer.release(kP0);
    auto rest = m.poll_all();
    EXPECT_THAT(offsets(rest), ElementsAre(4, 5, 6, 7, 8, 9));
    m.consumer.give_back(std::move(rest));
    m.consumer.hold(kP0);
  }
  Member after_crash(w.broker, of_group());
  w.run({&after_crash});
  EXPECT_EQ(offsets(after_crash.poll_all()).front(), 4);
}

TEST(ConsumerTest, HoldingThrowsNothingFetchedAway) {
  World w(1, 20'000);
  auto settings = of_group();
  settings.max_poll_records = 200;
  Member m(w.broker, settings);
  w.run({&m});
  std::deque<ConsumedRecord> queue;
  std::uint64_t delivered_bytes = 0;
  for (int i = 0; i < 6000; ++i) {  // 60 s, 100 records a second
    for (auto& record : m.poll()) {
      delivered_bytes += record.value->size();
      queue.push_back(std::move(record));
    }
    ASSERT_LE(queue.size(), 1200u);
    if (!queue.empty()) {
      m.consumer.finish(queue.front());
      queue.pop_front();
    }
    w.run({&m}, 10ms);
  }
  EXPECT_LE(static_cast<double>(w.broker.fetched_bytes()) / static_cast<double>(delivered_bytes), 1.1);
  EXPECT_LE(m.consumer.stats().holds, 13u);  // hysteresis: once per 500 records
}

TEST(ConsumerTest, ControlRecordsArePassedSoThatLagReachesZero) {
  World w(1, 3);
  w.broker.append_hidden(kP0);
  Member m(w.broker, of_group());
  w.run({&m});
  m.finish(m.poll_all());
  m.consumer.commit_finished();
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(4));
  EXPECT_EQ(m.consumer.stats().partitions.at(kP0).lag, 0);
  for (int i = 0; i < 3; ++i) w.broker.append_hidden(kP0);  // an aborted transaction: nothing is delivered
  EXPECT_THAT(m.poll(), IsEmpty());
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(7));
  EXPECT_EQ(m.consumer.stats().partitions.at(kP0).lag, 0);
}

TEST(ConsumerTest, AHiddenTailIsNotCommittedBeforeTheRecordsInFrontOfIt) {
  World w(1, 3);
  w.broker.append_hidden(kP0);
  Member m(w.broker, of_group());
  w.run({&m});
  const auto batch = m.poll_all();
  EXPECT_THAT(m.poll(), IsEmpty());
  m.finish(batch);  // handled, but the application has not committed: it may still want to see them again after a crash
  w.run({&m}, 1s);
  EXPECT_EQ(w.broker.committed("g", kP0), std::nullopt);
  EXPECT_TRUE(m.consumer.commit(kP0, Offset(3)).has_value());
  w.run({&m});
  EXPECT_EQ(w.broker.committed("g", kP0), Offset(4));
}

TEST(ConsumerTest, FirstTopicsAreReadFirst) {
  World w(1, 50);
  w.broker.create_topic("a", 1);
  w.fill({"a", PartitionId(0)}, 50);
  auto settings = of_group();
  settings.topics = {"a", "t"};
  settings.first_topics = {"t"};
  settings.max_poll_records = 30;
  Member m(w.broker, settings);
  w.run({&m});
  std::string order;
  for (const auto& record : m.poll_all()) {
    if (order.empty() || order.back() != record.partition.topic[0]) order += record.partition.topic[0];
  }
  EXPECT_EQ(order, "ta");
}

TEST(ConsumerTest, MemoryBoundsWhatIsHandedOut) {
  World w(4, 0);
  auto settings = of_group();
  settings.buffer_memory = kMiB;
  for (int p = 0; p < 4; ++p) {
    for (int i = 0; i < 500; ++i) w.broker.append({"t", PartitionId(p)}, std::string(10'000, 'x'));
  }
  Member m(w.broker, settings);
  w.run({&m});
  settings.max_poll_records = 10;
  std::deque<ConsumedRecord> held;
  std::size_t count = 0;
  while (count < 2000) {
    for (auto& record : m.poll()) held.push_back(std::move(record));
    ASSERT_FALSE(held.empty());
    ASSERT_LE(m.consumer.stats().handed_out_bytes, kMiB / 2 + 500 * 11'000);  // the limit and one batch
    for (; !held.empty(); held.pop_front(), ++count) m.consumer.finish(held.front());
  }
  EXPECT_EQ(m.consumer.stats().handed_out_bytes, 0u);
}

TEST(ConsumerTest, ThreadedPollWakesUpForRecordsAndDeliversEachOnce) {
  MemoryBroker broker(system_clock());
  broker.create_topic("t", 2);
  auto settings = of_group();
  settings.high_watermark = 50;
  settings.low_watermark = 20;
  Consumer consumer(broker.consumer(settings), true);
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) broker.append(i % 2 ? kP0 : kP1, std::to_string(i));
  });
  std::size_t seen = 0;
  for (int i = 0; i < 2000 && seen < 2000; ++i) {
    auto batch = consumer.poll(1s);
    ASSERT_TRUE(batch.has_value());
    seen += batch->size();
    for (const auto& record : *batch) consumer.finish(record);
  }
  writer.join();
  EXPECT_EQ(seen, 2000u);
  consumer.commit_finished();
  EXPECT_TRUE(consumer.flush_commits(5s).has_value());
  EXPECT_EQ(broker.committed("g", kP0), Offset(1000));
  EXPECT_TRUE(consumer.close(5s));
}

}  // namespace
}  // namespace weir
