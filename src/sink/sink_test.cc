#include "sink/sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/consumer_core.h"
#include "client/memory_broker.h"
#include "client/producer_core.h"
#include "runtime/temp_directory.h"
#include "sink/core.h"
#include "sink/memory_store.h"

namespace weir::sink {
namespace {

using namespace std::chrono_literals;
using client::MemoryBroker;
using testing::HasSubstr;

const TopicPartition kP0{"logs", PartitionId(0)};
const TopicPartition kP1{"logs", PartitionId(1)};
const TopicPartition kErrors{"logs_error", PartitionId(0)};
const TopicPartition kDead{"logs_dead_letter", PartitionId(0)};

std::string entry(std::string_view message) {
  return client::to_json({"web-1", "INFO", std::string(message), 1767225600000});
}

// A sink and a source over one broker in memory, in virtual time, on one thread.
struct World {
  explicit World(SinkSettings given = {}, MemoryStore* kept = nullptr)
      : settings(std::move(given)), store(kept ? *kept : own_store) {
    broker.create_topic("logs", 2);
    broker.create_topic("logs_error", 1);
    broker.create_topic("logs_dead_letter", 1);
    source_core = broker.producer({.when_full = WhenFull::kReject, .linger = 0ms});
    source.emplace(source_core, false);
    start();
  }
  void start() {
    core.emplace(
        settings, store, store.next,
        [this]() -> Result<TopicIds> {
          ++asked;
          if (!ids_told) return fail(ErrorKind::kTimeout, "no answer");
          return broker.topic_ids(settings.consumer.topics);
        },
        clock);
    consumer_core = broker.consumer(settings.consumer, core->hooks());
    consumer.emplace(consumer_core, false);
    dead_core = broker.producer({.when_full = WhenFull::kReject, .linger = 0ms});
    dead_letters.emplace(dead_core, false);
    core->attach(*consumer, *dead_letters);
  }
  // As kill -9 would: nothing is committed or closed by the sink.
  void restart() {
    broker.drop_members(settings.consumer.group_id);
    core.reset();
    consumer.reset();
    start();
  }
  void put(const TopicPartition& to, std::string value, std::vector<Header> headers = {},
           std::optional<std::string> key = {}) {
    ASSERT_TRUE(source
                    ->send(Record{.topic = to.topic,
                                  .partition = to.partition,
                                  .key = std::move(key),
                                  .value = std::move(value),
                                  .headers = std::move(headers)})
                    .accepted());
    for (int i = 0; i < 4; ++i) source_core->step();
  }
  void put_many(const TopicPartition& to, int count, int from = 0) {
    for (int i = from; i < from + count; ++i) {
      put(to, entry(std::to_string(i)),
          {{"weir.source", to.topic + std::to_string(to.partition.value)}, {"weir.pos", std::to_string(i)}});
    }
  }
  void run(Duration time = 200ms) {
    advance(time);
    check_conserved();
  }
  void advance(Duration time, Duration step = 10ms) {
    for (Duration passed{}; passed <= time; passed += step) {
      for (int i = 0; i < 3; ++i) {
        consumer_core->step();
        core->step(0ms);
        dead_core->step();
      }
      clock.advance(step);
    }
  }
  void check_conserved() {
    const SinkStats s = core->stats();
    std::uint64_t skipped = 0;
    for (const auto& [reason, n] : s.skipped) skipped += n;
    EXPECT_EQ(s.fetched, s.stored + s.duplicates + s.dead_lettered + s.in_memory + skipped);
    for (const auto& p : {kP0, kP1, kErrors}) {
      const auto committed = broker.committed("weir-sink", p);
      if (committed) {
        EXPECT_LE(committed->value, store.next[p].value);  // never ahead of the store
      }
    }
  }
  void make_anew(const std::string& topic, int partitions) {
    broker.delete_topic(topic);
    broker.create_topic(topic, partitions);
  }
  std::int64_t committed(const TopicPartition& p) { return broker.committed("weir-sink", p).value_or(Offset(0)).value; }

  ManualClock clock;
  MemoryBroker broker{clock};
  SinkSettings settings;
  MemoryStore own_store;
  MemoryStore& store;
  bool ids_told = true;
  int asked = 0;  // for the topics' ids
  std::shared_ptr<ProducerCore> source_core, dead_core;
  std::shared_ptr<ConsumerCore> consumer_core;
  std::optional<Producer> source, dead_letters;
  std::optional<SinkCore> core;
  std::optional<Consumer> consumer;
};

TEST(Sink, StoresCommitsAndCounts) {
  World w;
  w.put_many(kP0, 500);
  w.put_many(kErrors, 20);
  w.run();
  EXPECT_EQ(w.core->stats().stored, 520u);
  EXPECT_EQ(w.core->stats().error_latency.count, 20u);
  EXPECT_EQ(w.store.rows.size(), 520u);
  EXPECT_EQ(w.committed(kP0), 500);
  EXPECT_EQ(w.committed(kErrors), 20);
  EXPECT_TRUE(w.core->empty());
}

TEST(Sink, AResentRecordIsADuplicateAndDropped) {
  World w;
  w.put_many(kP0, 10);
  w.put_many(kP0, 10, 5);
  w.run();
  EXPECT_EQ(w.core->stats().stored, 15u);
  EXPECT_EQ(w.core->stats().duplicates, 5u);
  EXPECT_EQ(w.committed(kP0), 20);
}

TEST(Sink, TheStoreSaysWhereToStartNotTheCommit) {
  World w;
  w.put_many(kP0, 100);
  w.run();
  w.broker.set_committed("weir-sink", kP0, Offset(3));
  w.restart();
  w.put_many(kP0, 10, 100);
  w.run();
  EXPECT_EQ(w.core->stats().fetched, 10u);
  EXPECT_EQ(w.store.rows.size(), 110u);
  // An empty store reads from the start, whatever somebody else has committed.
  MemoryStore fresh;
  World other({}, &fresh);
  other.put_many(kP0, 5);
  other.broker.set_committed("weir-sink", kP0, Offset(4));
  other.run();
  EXPECT_EQ(fresh.rows.size(), 5u);
}

TEST(Sink, AStoredOffsetBeyondTheLogEndStopsIt) {
  MemoryStore kept;
  kept.next[kP0] = Offset(50);
  World w({}, &kept);
  w.put_many(kP0, 10);
  for (int i = 0; i < 20; ++i) w.consumer_core->step(), w.core->step(0ms);
  ASSERT_TRUE(w.core->failed());
  EXPECT_THAT(w.core->failed()->message,
              testing::AllOf(HasSubstr("50"), HasSubstr("10"), HasSubstr("logs/0"), HasSubstr("--data")));
}

TEST(Sink, AnotherClusterStopsIt) {
  World w;
  EXPECT_TRUE(w.core->check_cluster("one"));
  EXPECT_TRUE(w.core->check_cluster("one"));
  const auto other = w.core->check_cluster("two");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, testing::AllOf(HasSubstr("one"), HasSubstr("two"), HasSubstr("--data")));
}

constexpr auto says_made_anew = [](const Error& error) {
  return error.message.find("topic logs with id id-1") != std::string::npos &&
         error.message.find("with id id-4") != std::string::npos && error.message.find("--data") != std::string::npos;
};

// The new log is longer than what was stored: read by name, it would go on in its middle.
TEST(Sink, ATopicMadeAnewWhileItRunsStopsItAndNothingOfItIsStored) {
  World w;
  w.put_many(kP0, 100);
  w.run();
  w.make_anew("logs", 2);
  w.put_many(kP0, 150, 1000);
  w.put_many(kP1, 5, 2000);
  w.put(kP0, "no entry: nothing of it goes to the dead letters either");
  w.run();
  ASSERT_TRUE(w.core->failed());
  EXPECT_TRUE(says_made_anew(*w.core->failed())) << w.core->failed()->message;
  EXPECT_EQ(w.core->stats().fetched, 156u);  // the middle of the new log was fetched, and let go
  EXPECT_EQ(w.store.rows.size(), 100u);
  EXPECT_EQ(w.store.next, (Positions{{kP0, Offset(100)}}));
  EXPECT_EQ(w.committed(kP0), 100);
  EXPECT_TRUE(w.broker.records(kDead).empty());
}

TEST(Sink, ATopicMadeAnewBetweenTwoRunsStopsTheSecond) {
  for (const int records : {0, 10, 150}) {
    World w;
    w.put_many(kP0, 100);
    w.run();
    w.make_anew("logs", 2);
    w.put_many(kP0, records, 1000);
    w.restart();
    EXPECT_FALSE(w.core->check_topics());
    ASSERT_TRUE(w.core->failed());
    EXPECT_TRUE(says_made_anew(*w.core->failed())) << w.core->failed()->message;
    w.restart();  // the same without the look before joining
    w.run();
    ASSERT_TRUE(w.core->failed());
    EXPECT_TRUE(says_made_anew(*w.core->failed())) << w.core->failed()->message;
    EXPECT_EQ(w.store.rows.size(), 100u);
  }
}

TEST(Sink, MarkersOfATopicMadeAnewDoNotMoveThePosition) {
  World w;
  w.put_many(kP0, 10);
  w.run();
  w.make_anew("logs", 2);
  for (int i = 0; i < 20; ++i) w.broker.append_hidden(kP0);
  w.advance(500ms);  // what the group has committed is nobody's source: the store decides
  EXPECT_TRUE(w.core->failed());
  EXPECT_EQ(w.store.next[kP0], Offset(10));
}

TEST(Sink, AnIdleSinkSeesATopicMadeAnewToo) {
  World w;
  w.put_many(kP0, 10);
  w.run();
  w.make_anew("logs", 2);
  w.put_many(kP0, 10, 1000);  // the position is the end of the new log: nothing to read, nothing out of range
  w.run(1500ms);
  ASSERT_TRUE(w.core->failed());
  EXPECT_TRUE(says_made_anew(*w.core->failed()));
}

TEST(Sink, WhatWasFetchedBeforeItsTopicWasDeletedIsStored) {
  World w;
  w.store.full = true;
  w.put_many(kP0, 10);
  w.run();
  w.broker.delete_topic("logs");
  w.store.full = false;
  w.run(1s);
  EXPECT_FALSE(w.core->failed());
  EXPECT_EQ(w.store.rows.size(), 10u);
}

TEST(Sink, WhileIdsAreNotToldNothingIsStoredAndThenItGoesOn) {
  World w;
  w.ids_told = false;
  w.put_many(kP0, 10);
  w.put(kP1, "no entry");
  w.run(2s);
  EXPECT_FALSE(w.core->failed());
  EXPECT_TRUE(w.store.rows.empty());
  EXPECT_TRUE(w.broker.records(kDead).empty());
  EXPECT_EQ(w.core->stats().in_memory, 11u);
  EXPECT_LT(w.asked, 15);
  w.ids_told = true;
  w.run(500ms);
  EXPECT_EQ(w.store.rows.size(), 10u);
  EXPECT_EQ(w.broker.records(kDead).size(), 1u);
  // Asked again for what was fetched since, and no more than that.
  const int before = w.asked;
  w.put_many(kP0, 10, 10);
  w.run(100ms);
  EXPECT_EQ(w.store.rows.size(), 20u);
  EXPECT_LE(w.asked - before, 2);
}

TEST(Sink, ABrokerWithoutTopicIdsIsTakenAtItsWord) {
  World w;
  w.broker.gives_topic_ids = false;
  w.put_many(kP0, 10);
  w.run();
  w.make_anew("logs", 2);
  w.put_many(kP0, 15, 10);
  w.run(1500ms);
  EXPECT_FALSE(w.core->failed());
  EXPECT_EQ(w.store.rows.size(), 15u);
  EXPECT_TRUE(w.store.topics.empty());
}

// Field case: the store fails record 2 of 3 for good, then the process is killed.
TEST(Sink, ACommitNeverPassesARecordThatIsNeitherStoredNorDeadLettered) {
  World w;
  w.store.refused = {"1"};
  w.broker.create_topic("logs_dead_letter", 1);
  w.put_many(kP0, 1);
  w.run();
  w.dead_letters->close(0s);  // nothing can be dead-lettered
  w.put_many(kP0, 2, 1);
  w.run(2s);
  EXPECT_EQ(w.committed(kP0), 1);
  EXPECT_EQ(w.core->stats().in_memory, 2u);
  w.store.refused.clear();
  w.restart();
  w.run();
  EXPECT_EQ(w.core->stats().fetched, 2u);  // seen again
  EXPECT_EQ(w.committed(kP0), 3);
}

// Field case: record 7 of 10 is refused, three attempts 100 ms apart.
TEST(Sink, APoisonRecordGoesToTheDeadLettersOnceAfterItsAttempts) {
  World w;
  w.store.refused = {"6"};
  w.put_many(kP0, 10);
  w.run(900ms);
  EXPECT_EQ(w.store.rows.size(), 9u);
  EXPECT_EQ(w.committed(kP0), 10);
  EXPECT_EQ(w.core->stats().dead_lettered, 1u);
  const auto dead = w.broker.records(kDead);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_THAT(dead[0].headers, testing::Contains(Header{"weir.dlq.attempts", "3"}));
  EXPECT_THAT(dead[0].headers, testing::Contains(Header{"weir.dlq.offset", "6"}));
}

// Field case: a later event of the same key overtook a failed one.
TEST(Sink, ARecordBehindARefusedOneWaitsUntilThatIsADeadLetter) {
  World w;
  w.store.refused = {"1"};
  w.put_many(kP0, 3);
  w.put_many(kP1, 3, 10);
  w.run(150ms);  // between the attempts
  EXPECT_EQ(w.store.next[kP0], Offset(1));
  EXPECT_EQ(w.store.next[kP1], Offset(3));
  EXPECT_TRUE(w.broker.records(kDead).empty());
  w.run(500ms);
  EXPECT_EQ(w.broker.records(kDead).size(), 1u);
  EXPECT_EQ(w.store.next[kP0], Offset(3));
  EXPECT_EQ(w.store.rows.size(), 5u);
}

// Field case: records that always fail must not keep the others out, nor themselves for ever.
TEST(Sink, APartitionOfRefusedRecordsDoesNotHoldTheOthersUp) {
  SinkSettings settings;
  settings.consumer.high_watermark = 20;
  settings.consumer.low_watermark = 10;
  World w(settings);
  for (int i = 0; i < 40; ++i) w.store.refused.insert(std::to_string(i));
  w.put_many(kP0, 40);
  w.put_many(kP1, 300, 1000);
  w.run(1s);
  EXPECT_EQ(w.committed(kP1), 300);
  w.run(15s);
  EXPECT_EQ(w.committed(kP0), 40);
  EXPECT_EQ(w.core->stats().dead_lettered, 40u);
}

TEST(Sink, UnparseableRecordsDoNotBlockTheRest) {
  World w;
  w.put_many(kP0, 3);
  w.put(kP0, "not JSON");
  w.put_many(kP0, 3, 3);
  w.put_many(kP1, 5);
  w.run();
  EXPECT_EQ(w.core->stats().stored, 11u);
  EXPECT_EQ(w.core->stats().dead_lettered, 1u);
  EXPECT_EQ(w.committed(kP0), 7);
  EXPECT_EQ(w.broker.values("logs_dead_letter"), std::vector<std::string>{"not JSON"});
}

TEST(Sink, WithTheDeadLettersDownItStopsThereAndOtherPartitionsGoOn) {
  SinkSettings settings;
  settings.consumer.high_watermark = 100;
  settings.consumer.low_watermark = 50;
  settings.consumer.max_poll_records = 20;
  World w(settings);
  w.put(kP0, "poison");
  w.put_many(kP0, 300);
  w.put_many(kP1, 300);
  w.dead_core->request_close(0s);  // refuses everything from now on
  w.run(3s);
  EXPECT_EQ(w.committed(kP0), 0);
  EXPECT_EQ(w.committed(kP1), 300);
  EXPECT_EQ(w.store.rows.size(), 300u);
  EXPECT_LE(w.core->stats().in_memory, 120u);  // the high watermark and one batch
  EXPECT_GE(w.core->stats().in_memory, 100u);
}

TEST(Sink, ADeadLetterThatCannotBeTakenHoldsOnlyItsOwnPartition) {
  World w;
  w.broker.append(kP0, std::string(3 * kMiB, 'x'));
  w.put_many(kP0, 5);
  w.put(kP1, "poison");
  w.put_many(kP1, 5);
  w.run(2s);
  EXPECT_EQ(w.committed(kP1), 6);
  EXPECT_EQ(w.broker.records(kDead).size(), 1u);
  EXPECT_EQ(w.committed(kP0), 0);
}

TEST(Sink, ADeadLetterThatIsRefusedIsTriedLessAndLessOften) {
  World w;
  w.broker.max_message = 100;  // of the dead-letter topic, say
  w.broker.append(kP0, std::string(200, 'x'));
  w.advance(60s, 100ms);
  EXPECT_GE(w.broker.refusals(), 6u);
  EXPECT_LE(w.broker.refusals(), 20u);
  w.broker.max_message = 1'000'000;
  w.advance(11s, 100ms);
  EXPECT_EQ(w.broker.records(kDead).size(), 1u);
  EXPECT_EQ(w.committed(kP0), 1);
}

TEST(Sink, ABrokenStoreEndsTheDrain) {
  World w;
  w.store.full = true;
  w.put_many(kP0, 3);
  w.run();
  w.core->stop_polling();
  w.store.full = false;
  w.store.rows[{kP0, 0}].message = "of another source";
  const std::size_t before = w.store.writes;
  w.store.on_write = [&] {
    if (w.store.writes > before + 10) throw std::runtime_error("it goes on for ever");
  };
  w.clock.advance(1s);
  w.core->step(0ms);
  EXPECT_TRUE(w.core->failed());
  EXPECT_EQ(w.store.writes, before + 1);
}

TEST(Sink, WhatIsTakenAwayIsDroppedAtOnceAndWhatCameBackIsNot) {
  World w;
  w.store.full = true;
  w.put_many(kP0, 10);
  w.put_many(kP1, 7);
  w.put_many(kErrors, 5);
  w.run();
  const ConsumerHooks hooks = w.core->hooks();
  hooks.on_revoke({kP0, kP1}, false);  // the consumer still has them: it commits before it gives them up
  ASSERT_TRUE(hooks.on_assign({kP1, {}, Offset(0), Offset(7)}).has_value());
  w.core->step(0ms);
  EXPECT_EQ(w.core->stats().skipped.at("revoked"), 10u);
  EXPECT_EQ(w.core->stats().in_memory, 12u);
}

// Field case: key null, repeated and binary headers, the timestamp, the origin.
TEST(Sink, ADeadLetterKeepsItsHistory) {
  ConsumedRecord record{.partition = {"orders", PartitionId(3)},
                        .offset = Offset(17),
                        .timestamp = from_unix_ms(1234567),
                        .key = std::nullopt,
                        .value = "v"};
  record.headers = {{"a", "1"}, {"a", "2"}, {"bin", std::string("\0\xff", 2)}, {"null", std::nullopt}};
  const Record once = dead_letter_of(record, "dead", "bad", 3);
  EXPECT_EQ(once.key, std::nullopt);
  EXPECT_EQ(once.value, "v");
  EXPECT_EQ(to_unix_ms(once.timestamp), 1234567);
  std::vector<Header> expected = record.headers;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"topic", "orders"},
                                                                                    {"partition", "3"},
                                                                                    {"offset", "17"},
                                                                                    {"timestamp", "1234567"},
                                                                                    {"reason", "bad"},
                                                                                    {"attempts", "3"}}) {
    expected.push_back({"weir.dlq." + name, value});
  }
  EXPECT_EQ(once.headers, expected);
  record.headers = once.headers;  // replayed, and dead-lettered again: attempts go on, nothing is stacked
  const Record twice = dead_letter_of(record, "dead", "bad", 1);
  expected.back().value = "4";
  EXPECT_EQ(twice.headers, expected);
}

TEST(Sink, AFullDiskIsWaitedFor) {
  World w;
  w.store.full = true;
  w.put_many(kP0, 100);
  w.run(3s);
  EXPECT_EQ(w.committed(kP0), 0);
  EXPECT_GT(w.core->stats().store_retries, 2u);
  EXPECT_LT(w.core->stats().store_retries, 10u);
  w.store.full = false;
  w.run(1s);
  EXPECT_EQ(w.committed(kP0), 100);
}

TEST(Sink, ErrorsOvertakeABacklogBehindASlowStore) {
  SinkSettings settings;
  settings.records_per_second = 100;
  World w(settings);
  w.put_many(kP0, 1000);
  w.run(1s);
  const auto before = w.core->stats();
  EXPECT_NEAR(static_cast<double>(before.stored), 100, 25);
  w.put_many(kErrors, 5);
  w.run(300ms);
  EXPECT_EQ(w.committed(kErrors), 5);
  EXPECT_LT(w.core->stats().error_latency.max, 300ms);
  EXPECT_LT(w.core->stats().stored, 200u);
}

TEST(Sink, NoPartitionIsLeftBehindWhenRecordsComeInBurstsOfOneMillisecond) {
  SinkSettings settings;
  settings.records_per_second = 100;
  World w(settings);
  w.put_many(kP0, 24);
  w.put_many(kP1, 1);
  for (int i = 0; i < 20; ++i) {  // each is two transactions
    w.put_many(kP0, 19, 24 + 19 * i);
    w.put_many(kP1, 1, 1 + i);
    w.run(190ms);
  }
  EXPECT_GE(w.core->stats().stored, 390u);
  EXPECT_LE(w.core->stats().latency.max, 600ms);  // what was there first takes 250 ms
}

TEST(Sink, MarkersOfTransactionsArePassed) {
  World w;
  w.put_many(kP0, 3);
  w.broker.append_hidden(kP0);
  w.run(500ms);
  EXPECT_EQ(w.store.next[kP0], Offset(4));
  EXPECT_EQ(w.committed(kP0), 4);
}

TEST(Sink, RetentionThatWasFasterIsCounted) {
  World w;
  w.put_many(kP0, 10);
  w.run();
  w.put_many(kP0, 20, 10);
  w.broker.trim(kP0, Offset(25));
  w.restart();
  w.run();
  EXPECT_EQ(w.core->stats().expired, 15u);
  EXPECT_EQ(w.core->stats().stored, 5u);
}

TEST(Sink, RecordsOfALostPartitionAreDroppedNotCommitted) {
  SinkSettings settings;
  World w(settings);
  w.store.full = true;
  w.put_many(kP0, 50);
  w.run();
  w.broker.drop_members("weir-sink");
  w.run(500ms);
  EXPECT_EQ(w.core->stats().skipped.at("revoked"), 50u);
  w.store.full = false;
  w.run(1s);
  EXPECT_EQ(w.store.rows.size(), 50u);
  EXPECT_EQ(w.core->stats().duplicates, 0u);
  EXPECT_EQ(w.committed(kP0), 50);
}

TEST(Sink, OneForOneDatabase) {
  runtime::TempDirectory directory;
  SinkSettings settings;
  settings.database = directory / "logs.db";
  settings.consumer.bootstrap_servers = "127.0.0.1:1";
  auto first = Sink::open(settings);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(Sink::open(settings));
  (*first)->stop(0s);
}

}  // namespace
}  // namespace weir::sink
