#include "weir/producer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "client/memory_broker.h"
#include "client/producer_core.h"
#include "client/progress_feed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using client::MemoryBroker;

ProducerSettings rejecting() {
  ProducerSettings settings;
  settings.when_full = WhenFull::kReject;
  settings.linger = 0ms;
  return settings;
}

Record text(std::string value, Lane lane = Lane::kNormal, std::string topic = "t") {
  return {.topic = std::move(topic), .value = std::move(value), .lane = lane};
}

/// A producer without a thread, in virtual time.
struct Stepped {
  explicit Stepped(ProducerSettings settings = rejecting(), int partitions = 1) {
    broker.create_topic("t", partitions);
    core = broker.producer(settings);
    producer = std::make_unique<Producer>(core, false);
  }
  SendResult send(std::string value, Lane lane = Lane::kNormal) {
    return producer->send(text(std::move(value), lane), [this](Delivery& delivery) {
      (delivery.status == Delivery::Status::kAcked ? acked : failed).push_back(delivery.record.value.value_or(""));
      reasons.emplace_back(delivery.reason);
    });
  }
  void run(Duration time = 0ms, Duration step = 10ms) {
    for (int i = 0; i < 5; ++i) core->step();
    for (Duration passed{}; passed < time; passed += step) {
      clock.advance(step);
      core->step();
    }
  }
  void check_conserved() {
    const auto stats = producer->stats();
    EXPECT_EQ(stats.accepted,
              stats.waiting + stats.in_flight + stats.unreported + stats.acked + stats.rejected + stats.undelivered);
  }

  ManualClock clock;
  MemoryBroker broker{clock};
  std::shared_ptr<ProducerCore> core;
  std::unique_ptr<Producer> producer;
  std::vector<std::string> acked;
  std::vector<std::string> failed;
  std::vector<std::string> reasons;
};

TEST(Producer, AnApplicationThatNeverPollsGetsItsRoomBack) {
  MemoryBroker broker(system_clock());
  broker.create_topic("t", 4);
  ProducerSettings settings;
  settings.buffer_records = 1000;
  settings.linger = 0ms;
  Producer producer(broker.producer(settings), true);
  std::atomic<int> acked = 0;
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(
        producer.send(text(std::to_string(i)), [&](Delivery& d) { acked += d.status == Delivery::Status::kAcked; })
            .accepted());
  }
  EXPECT_EQ(producer.flush(30s), 0u);
  EXPECT_EQ(acked, 50'000);
  EXPECT_EQ(broker.values("t").size(), 50'000u);
  EXPECT_LE(producer.stats().peak_buffer_bytes, settings.buffer_memory);
  EXPECT_EQ(producer.close(5s), 0u);
}

TEST(Producer, WithTheBrokerDownTheLimitIsExactAndRoomComesBackWithIt) {
  auto settings = rejecting();
  settings.buffer_records = 1000;
  Stepped t(settings);
  t.broker.up = false;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(t.send(std::to_string(i)).accepted());
  t.run(10s, 100ms);
  EXPECT_EQ(t.send("one more").outcome, SendOutcome::kFull);
  EXPECT_EQ(t.producer->stats().refused_full, 1u);
  t.broker.up = true;
  t.run(10ms);
  EXPECT_TRUE(t.send("one more").accepted());
  t.run(10ms);
  EXPECT_EQ(t.acked.size(), 1001u);
  t.check_conserved();
}

TEST(Producer, GaugesSayWhatTheyCount) {
  Stepped t;
  t.broker.up = false;
  for (int i = 0; i < 10; ++i) t.send("x");
  t.run(50ms);
  auto stats = t.producer->stats();
  EXPECT_THAT((std::vector{stats.waiting, stats.in_flight, stats.unreported}), testing::ElementsAre(10, 0, 0));
  EXPECT_EQ(t.producer->flush(0s), 10u);
  t.broker.up = true;
  t.broker.ack_delay = 1s;
  t.run(50ms);
  stats = t.producer->stats();
  EXPECT_THAT((std::vector{stats.waiting, stats.in_flight, stats.unreported}), testing::ElementsAre(0, 10, 0));
  t.run(1s);
  EXPECT_EQ(t.producer->flush(0s), 0u);
  t.run(1h, 1min);
  EXPECT_EQ(t.producer->flush(0s), 0u);  // idle
}

TEST(Producer, ComesBackAfterEveryRetryIsUsedUp) {
  Stepped t;
  t.broker.up = false;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(t.send(std::to_string(i)).accepted());
  t.run(50ms);
  EXPECT_EQ(t.producer->stats().state, ProducerState::kBlocked);
  EXPECT_THAT(t.producer->stats().limit.why, testing::HasSubstr("broker"));
  t.broker.failing_reopens = 10;
  t.broker.break_producers(false);
  t.run(30s, 100ms);
  t.broker.up = true;
  t.broker.ack_delay = 100ms;
  t.run(20ms);
  EXPECT_EQ(t.producer->stats().state, ProducerState::kDraining);
  t.run(200ms);
  EXPECT_EQ(t.producer->stats().state, ProducerState::kOpen);
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(t.broker.values("t"), expected);  // none lost, none twice, none out of order
  EXPECT_EQ(t.acked, expected);
  EXPECT_EQ(t.producer->stats().resent, 100u);
  t.check_conserved();
}

TEST(Producer, ABrokerThatNeverAnswersStopsTheSenderNotTheMachine) {
  auto settings = rejecting();
  settings.buffer_memory = 4 * kMiB;
  Stepped t(settings);
  t.broker.answering = false;
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    accepted += t.send(std::string(1024, 'x')).accepted();
    if (i % 100 == 0) t.run();
    ASSERT_LE(t.producer->stats().buffer_bytes, settings.buffer_memory);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 4096);
  EXPECT_EQ(t.producer->stats().limit.limited_by, LimitedBy::kMemory);
  t.run(20s, 1s);
  EXPECT_EQ(t.producer->stats().state, ProducerState::kBlocked);
  t.broker.answering = true;
  t.run(50ms, 1ms);
  EXPECT_EQ(t.acked.size(), static_cast<std::size_t>(accepted));
  EXPECT_EQ(t.producer->stats().buffer_bytes, 0u);
}

TEST(Producer, CloseSendsWhatLingers) {
  auto settings = rejecting();
  settings.linger = 60s;
  Stepped t(settings);
  for (int i = 0; i < 436; ++i) t.send("x");
  t.run(100ms);
  EXPECT_EQ(t.acked.size(), 0u);
  t.producer->close(5s);
  t.run(20ms);
  EXPECT_EQ(t.acked.size(), 436u);
  EXPECT_EQ(t.producer->stats().state, ProducerState::kClosed);
  EXPECT_EQ(t.send("late").outcome, SendOutcome::kClosed);
}

TEST(Producer, CloseGivesBackWhatItCouldNotSend) {
  auto settings = rejecting();
  settings.linger = 60s;
  Stepped t(settings);
  t.broker.up = false;
  for (int i = 0; i < 436; ++i) t.send("x");
  t.producer->close(5s);
  t.run(4900ms, 100ms);
  EXPECT_EQ(t.failed.size(), 0u);
  t.run(200ms, 100ms);
  EXPECT_EQ(t.failed.size(), 436u);
  EXPECT_THAT(t.reasons, testing::Each("closed"));
  EXPECT_TRUE(t.core->finished());
  EXPECT_EQ(t.producer->stats().undelivered, 436u);
  t.check_conserved();
}

TEST(Producer, ATooLargeRecordFailsAtOnceAndAlone) {
  Stepped t;
  EXPECT_TRUE(t.send("a").accepted());
  const auto big = t.send(std::string(1'126'653, 'x'));
  EXPECT_EQ(big.outcome, SendOutcome::kRejected);
  EXPECT_EQ(big.reason, "too_large");
  EXPECT_TRUE(t.send("b").accepted());
  t.run(10ms);
  EXPECT_THAT(t.acked, testing::ElementsAre("a", "b"));
  EXPECT_EQ(t.producer->stats().refused_rejected, 1u);
}

TEST(Producer, ABatchRefusedForOneRecordCostsOnlyThatRecord) {
  Stepped t;
  t.broker.max_message = 1000;
  t.broker.batch_records = 3;
  t.broker.answering = false;  // so that the three meet in one batch
  const std::string big(2000, 'x');
  for (const auto& value : {std::string("a"), big, std::string("b"), std::string("c")}) t.send(value);
  t.run();
  t.broker.answering = true;
  t.run(50ms, 1ms);
  EXPECT_THAT(t.acked, testing::UnorderedElementsAre("a", "b", "c"));
  EXPECT_THAT(t.failed, testing::ElementsAre(big));
  EXPECT_EQ(t.producer->stats().rejected, 1u);
  t.check_conserved();
}

TEST(Producer, StageTimesAddUpAndTheColdOneIsMarked) {
  Stepped t;
  t.broker.ack_delay = 30ms;
  std::vector<Delivery> seen;
  auto send = [&] { return t.producer->send(text("x"), [&](Delivery& d) { seen.push_back(d); }).accepted(); };
  ASSERT_TRUE(send());
  t.run(100ms);
  ASSERT_TRUE(send());
  t.run(100ms);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen[0].cold);
  EXPECT_FALSE(seen[1].cold);
  for (const auto& d : seen)
    EXPECT_EQ((d.handed_at - d.accepted_at) + (d.acked_at - d.handed_at), d.acked_at - d.accepted_at);
  EXPECT_EQ(seen[1].acked_at - seen[1].handed_at, 30ms);
}

TEST(Producer, ACallbackMaySendAgainWithoutBlocking) {
  MemoryBroker broker(system_clock());
  broker.create_topic("t", 1);
  ProducerSettings settings;  // kBlock, 60 s: a callback must not wait that long for itself
  settings.buffer_records = 4;
  settings.linger = 0ms;
  auto producer = std::make_unique<Producer>(broker.producer(settings), true);
  std::atomic<int> full = 0;
  std::atomic<int> delivered = 0;
  OnDelivery again = [&](Delivery&) {
    ++delivered;
    for (int i = 0; i < 8; ++i)
      full += producer->send(text("more"), [&](Delivery&) { ++delivered; }).outcome != SendOutcome::kAccepted;
    EXPECT_LE(producer->flush(10s), 8u);
  };
  for (int i = 0; i < 500; ++i) producer->send(text("x"), again);
  const auto began = std::chrono::steady_clock::now();
  producer->close(10s);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_GT(full, 0);
  EXPECT_EQ(static_cast<std::uint64_t>(delivered), producer->stats().accepted);
}

TEST(Producer, CloseFromACallbackAndWithAStuckCallbackReturns) {
  // Never destroyed: the thread of the stuck callback is let go and ends some time after this test.
  static MemoryBroker& broker = *new MemoryBroker(system_clock());
  broker.create_topic("t", 1);
  auto settings = rejecting();
  Producer from_inside(broker.producer(settings), true);
  std::promise<void> closed;
  from_inside.send(text("x"), [&](Delivery&) {
    from_inside.close(10s);
    closed.set_value();
  });
  EXPECT_EQ(closed.get_future().wait_for(5s), std::future_status::ready);
  EXPECT_EQ(from_inside.send(text("y")).outcome, SendOutcome::kClosed);

  auto release = std::make_shared<std::promise<void>>();
  auto entered = std::make_shared<std::promise<void>>();
  const auto began = std::chrono::steady_clock::now();
  {
    Producer stuck(broker.producer(settings), true);
    stuck.send(text("x"), [entered, wait = release->get_future().share()](Delivery&) {
      entered->set_value();
      wait.wait();
    });
    entered->get_future().wait();
    stuck.close(100ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
  release->set_value();
}

TEST(Producer, SendIsNeverHeldLongerThanAsked) {
  MemoryBroker broker(system_clock());
  broker.up = false;
  auto settings = rejecting();
  settings.buffer_records = 10;
  Producer rejects(broker.producer(settings), true);
  for (int i = 0; i < 1000; ++i) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(rejects.send(text("x")).outcome, i < 10 ? SendOutcome::kAccepted : SendOutcome::kFull);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 250ms);  // never a wait; the bound allows for a busy machine
  }
  EXPECT_EQ(rejects.stats().blocked, Duration::zero());
  const auto began = std::chrono::steady_clock::now();
  Record record = text("x");
  EXPECT_EQ(rejects.send(record, 50ms, {}).outcome, SendOutcome::kFull);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 50ms);
  EXPECT_EQ(record.value, "x");  // the caller keeps it
  EXPECT_GE(rejects.stats().blocked, 50ms);
}

TEST(Producer, TheHighLaneOvertakesWhatIsQueued) {
  auto settings = rejecting();
  settings.messages_per_second = 10;
  Stepped t(settings);
  for (int i = 0; i < 100; ++i) t.send("low", Lane::kNormal);
  t.run();
  const auto before = t.acked.size();  // the burst
  ASSERT_LT(before, 100u);
  t.send("error", Lane::kHigh);
  t.run(200ms);
  ASSERT_GT(t.acked.size(), before);
  EXPECT_EQ(t.acked[before], "error");
  EXPECT_EQ(t.producer->stats().limit.limited_by, LimitedBy::kMessageRate);
  EXPECT_EQ(t.producer->stats().waiting_by_lane[static_cast<std::size_t>(Lane::kNormal)], 101 - t.acked.size());
}

TEST(Producer, RateHoldsInTheLongRun) {
  auto settings = rejecting();
  settings.messages_per_second = 100;
  Stepped t(settings);
  for (int i = 0; i < 5000; ++i) t.send("x");
  t.run(20s);
  EXPECT_NEAR(static_cast<double>(t.acked.size()), 2100, 20);  // 20 s and one second's burst
}

TEST(Producer, PausesWhileLagIsAboveTheLimit) {
  auto settings = rejecting();
  settings.max_lag = 1000;
  settings.pause_sleep = 500ms;
  Stepped t(settings);
  t.producer->set_lag(1001);
  t.run();
  t.send("x");
  t.run(490ms);
  EXPECT_EQ(t.acked.size(), 0u);
  EXPECT_EQ(t.producer->stats().limit.limited_by, LimitedBy::kPause);
  EXPECT_THAT(t.producer->stats().limit.why, testing::HasSubstr("1001"));
  t.producer->set_lag(2000);
  t.run(490ms);
  EXPECT_EQ(t.acked.size(), 0u);
  t.producer->set_lag(999);
  t.run(600ms);
  EXPECT_EQ(t.acked.size(), 1u);

  t.producer->set_lag(5000);
  t.run();
  t.send("y");
  t.producer->set_lag(std::nullopt);  // cannot be measured: releases
  t.run(600ms);
  EXPECT_EQ(t.acked.size(), 2u);
}

TEST(Producer, ADirectiveHoldsItsScopeUntilItExpires) {
  Stepped t;
  t.broker.create_topic("other", 1);
  Directive stop{.scope = {.client_id = "", .topic = "t", .partition = {}},
                 .pause = true,
                 .records_per_second = {},
                 .bytes_per_second = {},
                 .reason = "test",
                 .signal = {},
                 .expires = t.clock.now().mono + 10s};
  t.producer->apply(stop);
  t.send("held");
  t.producer->send(text("free", Lane::kHigh, "other"));
  t.run(9s, 100ms);
  EXPECT_EQ(t.acked.size(), 0u);
  EXPECT_EQ(t.broker.values("other").size(), 1u);
  t.run(2s, 100ms);
  EXPECT_EQ(t.acked.size(), 1u);
}

TEST(Producer, TheWindowBoundsWhatIsNotConsumed) {
  auto settings = rejecting();
  settings.window = true;
  settings.window_floor = 100;
  settings.lag_target = 50ms;
  Stepped t(settings);
  for (int i = 0; i < 1000; ++i) t.send("x");
  t.run(1s);
  EXPECT_EQ(t.broker.values("t").size(), 100u);
  EXPECT_EQ(t.producer->stats().unconsumed, 100);
  EXPECT_EQ(t.producer->stats().limit.limited_by, LimitedBy::kConsumer);
  t.producer->consumed({"t", PartitionId(0)}, Offset(30));
  t.run(10ms);
  EXPECT_GE(t.broker.values("t").size(), 130u);
  for (int i = 0; i < 1000 && t.acked.size() < 1000; ++i) {
    t.producer->consumed({"t", PartitionId(0)}, t.broker.log_end({"t", PartitionId(0)}));
    t.run(10ms);
  }
  EXPECT_EQ(t.acked.size(), 1000u);
}

TEST(Producer, ATopicMadeAnewDoesNotKeepTheWindowClosed) {
  auto settings = rejecting();
  settings.window = true;
  settings.window_floor = 100;
  Stepped t(settings);
  for (int i = 0; i < 1000; ++i) t.send("x");
  t.run(1s);
  t.producer->consumed({"t", PartitionId(0)}, Offset(0));
  t.broker.delete_topic("t");
  t.broker.create_topic("t", 1);
  t.run(1s);
  EXPECT_EQ(t.broker.values("t").size(), 0u);  // the hundred that are gone fill it
  std::map<std::string, std::string> ids;
  EXPECT_THAT(client::made_anew(ids, {{.name = "t", .id = "1"}, {.name = "u", .id = ""}}), testing::IsEmpty());
  EXPECT_THAT(client::made_anew(ids, {}), testing::IsEmpty());
  const auto anew = client::made_anew(ids, {{.name = "t", .id = "2"}, {.name = "u", .id = ""}});
  EXPECT_THAT(anew, testing::ElementsAre("t"));
  for (const auto& topic : anew) t.producer->forget(topic);
  t.run(10ms);
  EXPECT_EQ(t.broker.values("t").size(), 100u);
}

TEST(Producer, AWindowWithoutReportsKeepsItsSizeThenLetsGoAndSaysSo) {
  auto settings = rejecting();
  settings.window = true;
  settings.lag_target = 1s;
  Stepped t(settings);
  t.broker.up = false;
  for (int i = 0; i < 1000; ++i) t.send("x");
  t.run(60s, 100ms);
  t.broker.up = true;
  t.run(9800ms);
  EXPECT_EQ(t.broker.values("t").size(), 100u) << "a broker that is away is not a silent one";
  EXPECT_EQ(t.producer->stats().limit.limited_by, LimitedBy::kConsumer);
  t.run(300ms);
  EXPECT_EQ(t.broker.values("t").size(), 1000u);
  EXPECT_NE(t.producer->stats().limit.why.find("let go"), std::string::npos);
  // Known again: what is on its way is too much already.
  t.producer->consumed({{{"t", PartitionId(0)}, Offset(10)}});
  t.send("x");
  t.run(1s);
  EXPECT_EQ(t.broker.values("t").size(), 1000u);
  EXPECT_EQ(t.producer->stats().limit.why.find("let go"), std::string::npos);
}

TEST(Producer, AConsumerThatStandsKeepsTheWindowClosed) {
  auto settings = rejecting();
  settings.window = true;
  Stepped t(settings);
  for (int i = 0; i < 1000; ++i) t.send("x");
  for (int second = 0; second < 60; ++second) {
    t.producer->consumed({});  // a group that never committed
    t.run(1s, 100ms);
  }
  EXPECT_EQ(t.broker.values("t").size(), 100u);
}

TEST(Producer, AChildOfForkIsToldAtOnce) {
  MemoryBroker broker(system_clock());
  broker.create_topic("t", 1);
  auto producer = std::make_unique<Producer>(broker.producer(rejecting()), true);
  ASSERT_TRUE(producer->send(text("parent")).accepted());
  const pid_t child = fork();
  if (child == 0) {
    const bool told = producer->send(text("child")).outcome == SendOutcome::kClosed && producer->flush(10s) == 0 &&
                      producer->close(10s) == 0;
    producer.reset();
    _exit(told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(producer->flush(5s), 0u);
  EXPECT_EQ(broker.values("t").size(), 1u);
}

// Whatever happens to the broker and the client library: every accepted record is reported once, everything acked is in
// the log, and first appearances keep the order of sending.
RC_GTEST_PROP(Producer, ConservesUnderAnyFaults, (const std::vector<std::uint8_t>& choices)) {
  auto settings = rejecting();
  settings.buffer_memory = kMiB;
  Stepped t(settings);
  int sent = 0;
  for (const std::uint8_t choice : choices) {
    switch (choice % 8) {
      case 0: t.broker.up = !t.broker.up; break;
      case 1: t.broker.answering = !t.broker.answering; break;
      case 2: t.broker.break_producers(choice & 8); break;
      case 3: t.broker.ack_delay = std::chrono::milliseconds(choice); break;
      case 4: t.run(std::chrono::milliseconds(choice)); break;
      default: sent += t.send(fmt::format("{:06}", sent)).accepted();
    }
    if (choice & 16) t.core->step();
  }
  if (choices.size() % 2 == 0) {
    t.broker.up = t.broker.answering = true;
    t.broker.ack_delay = 0ms;
    t.run(3s, 100ms);
    RC_ASSERT(t.acked.size() == static_cast<std::size_t>(sent));
  }
  t.producer->close(1s);
  t.run(3s, 100ms);
  RC_ASSERT(t.core->finished());
  RC_ASSERT(t.acked.size() + t.failed.size() == static_cast<std::size_t>(sent));
  std::set<std::string> stored;
  std::vector<std::string> first;
  for (const auto& value : t.broker.values("t")) {
    if (stored.insert(value).second) first.push_back(value);
  }
  RC_ASSERT(std::is_sorted(first.begin(), first.end()));
  for (const auto& value : t.acked) RC_ASSERT(stored.contains(value));
  RC_ASSERT(t.producer->stats().buffer_bytes == 0u);
}

}  // namespace
}  // namespace weir
