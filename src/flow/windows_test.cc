// The windows in closed loops, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "flow/adaptive_window.h"
#include "flow/end_to_end_window.h"

namespace weir::flow {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
const MonoTime kStart{seconds(100)};
const TopicPartition kPartition{"t", PartitionId(0)};

/// A producer that always has a record, a broker with a fixed delay, a consumer with a fixed time per record that
/// reports every `report_every`. Steps of 50 us.
struct Loop {
  EndToEndWindow window;
  Duration per_record;
  Duration report_every;
  Duration broker_delay = milliseconds(2);
  Duration report_delay = Duration::zero();
  Duration per_append = Duration::zero();  // the broker takes that long for each record, one after the other

  struct InFlight {
    MonoTime at;
    Offset offset;
  };
  MonoTime now = kStart;
  std::deque<InFlight> broker;
  std::deque<InFlight> log;
  std::deque<std::pair<MonoTime, Offset>> reports;
  Offset next{0};
  Offset consumed{0};
  MonoTime consumer_free = kStart;
  MonoTime broker_free = kStart;
  MonoTime next_report = kStart;
  std::int64_t done = 0;
  std::int64_t most_unconsumed = 0;
  std::vector<Duration> delays;
  double offered = 1e9;  // records a second
  double credit = 0;

  void run(Duration span) {
    const Duration step = microseconds(50);
    for (const MonoTime end = now + span; now < end; now += step) {
      credit = std::min(credit + offered * to_seconds(step), 1e6);
      while (credit >= 1 && window.room(now) && broker.size() < 20000) {
        window.admitted();
        broker.push_back({now, next});
        ++next;
        credit -= 1;
      }
      while (!broker.empty() && broker.front().at + broker_delay <= now && broker_free <= now) {
        broker_free = std::max(broker_free, now - step) + per_append;
        window.acked(now, kPartition, broker.front().offset, now - broker.front().at);
        log.push_back(broker.front());
        broker.pop_front();
      }
      while (!log.empty() && consumer_free <= now) {
        consumer_free = std::max(consumer_free, now - step) + per_record;
        delays.push_back(now - log.front().at);
        consumed = log.front().offset + 1;
        log.pop_front();
        ++done;
      }
      if (now >= next_report) {
        reports.emplace_back(now + report_delay, consumed);
        next_report = now + report_every;
      }
      while (!reports.empty() && reports.front().first <= now) {
        window.consumed(kPartition, reports.front().second);
        window.reported(now);
        reports.pop_front();
      }
      most_unconsumed = std::max(most_unconsumed, window.unconsumed());
    }
  }
  Duration percentile(double p) {
    std::sort(delays.begin(), delays.end());
    return delays[std::size_t(p * double(delays.size() - 1))];
  }
  void forget_measurements() {
    delays.clear();
    done = 0;
  }
};

TEST(EndToEndWindow, ConsumerOf13000IsKeptBusyAndTheDelayUnder100Ms) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(5)};
  loop.run(seconds(2));
  loop.forget_measurements();
  loop.run(seconds(10));
  EXPECT_LT(loop.percentile(0.99), milliseconds(100));
  EXPECT_GE(double(loop.done) / 10, 0.95 * 1e6 / 77);
  // No slope: the end is not later than the middle.
  EXPECT_LE(loop.window.limit(), 2 * 650);
}

// Then the acknowledgements wait in a queue that the window itself makes: believed, it would double with every round.
TEST(EndToEndWindow, ABrokerSlowerThanTheConsumerIsNoReasonForALongerQueue) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(5)};
  loop.per_append = microseconds(100);
  loop.run(seconds(30));
  EXPECT_LE(loop.most_unconsumed, 700);
  EXPECT_GE(double(loop.done) / 30, 0.98 * 1e6 / 100);
}

// Here the acknowledgements are slow whatever the window does.
TEST(EndToEndWindow, AFarBrokerWidensTheSpanOnceAProbeHasShownIt) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(1)};
  loop.broker_delay = milliseconds(100);
  loop.run(seconds(8));
  EXPECT_NEAR(to_ms(loop.window.loop_delay()), 101, 5);
  loop.forget_measurements();
  loop.run(seconds(30));
  EXPECT_GE(double(loop.done) / 30, 0.97 * 1e6 / 77);
  EXPECT_LT(loop.percentile(0.5), milliseconds(210));
}

TEST(EndToEndWindow, CommittedOffsetsReadEveryFifthOfASecondHoldALagOfFiveSeconds) {
  Loop loop{EndToEndWindow({.target = seconds(5)}, kStart), microseconds(333), milliseconds(210)};
  loop.report_delay = milliseconds(150);
  loop.run(seconds(20));
  loop.forget_measurements();
  loop.run(seconds(15));
  EXPECT_GE(double(loop.done) / 15, 0.99 * 3000);
  EXPECT_NEAR(to_seconds(loop.percentile(0.5)), 5.0, 0.6);
  EXPECT_LT(to_seconds(loop.percentile(1.0)), 6.0);
}

// Half a second to connect, then acknowledgements that take 300 ms and become quick within a second.
TEST(EndToEndWindow, ASlowStartLeavesNoQueueBehind) {
  for (const int spoilt_ms : {0, 500, 1500}) {
    Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(1)};
    loop.broker_delay = milliseconds(500);
    loop.run(milliseconds(500));
    loop.broker_delay = milliseconds(300);
    loop.run(milliseconds(spoilt_ms));
    for (int tenth = 1; tenth <= 10; ++tenth) {
      loop.broker_delay = milliseconds(300 - 295 * tenth / 10);
      loop.run(milliseconds(100));
    }
    EXPECT_LE(loop.most_unconsumed, 700) << "a window for the cold broker";
    loop.forget_measurements();
    loop.run(seconds(10));
    EXPECT_LT(loop.percentile(1.0), milliseconds(100)) << spoilt_ms;
    EXPECT_GE(double(loop.done) / 10, 0.97 * 1e6 / 77);
    EXPECT_LE(loop.window.loop_delay(), milliseconds(10));
  }
}

// A stop of the broker or of the consumer is no reason for a longer queue either.
TEST(EndToEndWindow, OneStopIsNotTheLoop) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(1)};
  loop.run(seconds(10));
  loop.broker_delay = seconds(3);
  loop.run(seconds(3));
  loop.broker_delay = milliseconds(2);
  loop.run(seconds(1));
  loop.consumer_free = loop.now + seconds(4);
  loop.most_unconsumed = 0;
  loop.run(seconds(6));
  EXPECT_LE(loop.most_unconsumed, 700);
  EXPECT_LE(loop.window.loop_delay(), milliseconds(5));
}

TEST(EndToEndWindow, FollowsAConsumerThatChangesItsSpeed) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(1)};
  for (const auto per_record : {microseconds(77), microseconds(250), microseconds(60), microseconds(400)}) {
    loop.per_record = per_record;
    loop.run(seconds(1));
    loop.forget_measurements();
    loop.run(seconds(4));
    EXPECT_LT(loop.percentile(0.99), milliseconds(60)) << per_record.count();
    EXPECT_GE(double(loop.done) / 4, 0.97 * 1e6 / double(per_record.count())) << per_record.count();
  }
}

TEST(EndToEndWindow, SlowReportsWidenTheSpanInsteadOfStarvingTheConsumer) {
  // Target 50 ms, but progress is known every 200 ms only: W covers twice the loop.
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(100), milliseconds(200)};
  loop.run(seconds(10));
  loop.forget_measurements();
  loop.run(seconds(5));
  EXPECT_GE(double(loop.done) / 5, 0.9 * 10000);
  EXPECT_LT(loop.percentile(0.99), milliseconds(900));
}

TEST(EndToEndWindow, ReportInPiecesCountsAsOneGap) {
  EndToEndWindow window({.target = seconds(5)}, kStart);
  for (int second = 0; second < 20; ++second) {
    for (int p = 0; p < 32; ++p) {
      const TopicPartition partition{"t", PartitionId(p)};
      const MonoTime now = kStart + seconds(second) + microseconds(p);
      window.admitted();
      window.acked(now, partition, Offset(second), milliseconds(1));
      window.consumed(partition, Offset(second));
      window.reported(now);
    }
  }
  EXPECT_NEAR(to_seconds(window.loop_delay()), 1.0, 0.1);
}

TEST(EndToEndWindow, DoesNotTalkItselfDownWhenLittleIsOffered) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(5)};
  loop.run(seconds(3));
  const auto full = loop.window.limit();
  loop.offered = 200;
  loop.run(seconds(20));
  EXPECT_GE(loop.window.limit(), full * 9 / 10);
}

TEST(EndToEndWindow, FollowsAConsumerThatBecomesSlower) {
  Loop loop{EndToEndWindow({.target = milliseconds(50)}, kStart), microseconds(77), milliseconds(5)};
  loop.run(seconds(3));
  loop.per_record = microseconds(770);
  loop.run(seconds(2));
  EXPECT_NEAR(double(loop.window.limit()), 100, 10);  // 1,300/s x 50 ms is under the floor
}

TEST(EndToEndWindow, DeadConsumerStopsAdmissionAtTheFloorAndSilenceReleasesOnlyWhenAllowed) {
  EndToEndWindow window({.target = seconds(5), .release_after = seconds(10)}, kStart);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(window.room(kStart));
    window.admitted();
    window.acked(kStart, kPartition, Offset(i + 1000), milliseconds(2));
  }
  EXPECT_FALSE(window.room(kStart));
  // Progress is known and there is none.
  for (int s = 1; s < 60; ++s) {
    window.reported(kStart + seconds(s));
    EXPECT_FALSE(window.room(kStart + seconds(s)));
  }
  EXPECT_FALSE(window.room(kStart + seconds(69)));
  EXPECT_TRUE(window.room(kStart + seconds(70)));
  EndToEndWindow patient({.target = seconds(5)}, kStart);
  for (int i = 0; i < 100; ++i) patient.admitted();
  EXPECT_FALSE(patient.room(kStart + std::chrono::hours(1)));
}

TEST(EndToEndWindow, BacklogOfAnEarlierRunCountsAndLateReportsAreIgnored) {
  EndToEndWindow window({.target = seconds(5)}, kStart);
  window.consumed(kPartition, Offset(1000));
  window.reported(kStart);
  window.admitted();
  window.acked(kStart, kPartition, Offset(50'000), milliseconds(2));
  EXPECT_EQ(window.unconsumed(), 49'001);
  window.consumed(kPartition, Offset(50'000));
  window.consumed(kPartition, Offset(2000));
  EXPECT_EQ(window.unconsumed(), 1);
  window.admitted();
  window.dropped();
  EXPECT_EQ(window.unconsumed(), 1);
  window.forget("t");
  EXPECT_EQ(window.unconsumed(), 0);
}

// ---- Adaptive window -----------------------------------------------------------------------------------------------

struct AckLoop {
  AdaptiveWindow window;
  double bytes_per_second;
  Duration base = milliseconds(4);
  MonoTime now = kStart;
  MonoTime broker_free = kStart;
  std::deque<std::pair<MonoTime, MonoTime>> in_flight;  // sent, acknowledged
  double done = 0;
  Duration worst{};

  void run(Duration span, double offered = 1e18) {
    constexpr Bytes kBatch = 16 * kKiB;
    double credit = 0;
    for (const MonoTime end = now + span; now < end; now += microseconds(100)) {
      credit = std::min(credit + offered * 1e-4, 1e9);
      while (credit >= kBatch && window.room(kBatch)) {
        credit -= kBatch;
        window.sent(kBatch);
        broker_free = std::max(broker_free, now) + from_seconds(kBatch / bytes_per_second);
        in_flight.emplace_back(now, broker_free + base);
      }
      while (!in_flight.empty() && in_flight.front().second <= now) {
        window.acked(now, kBatch, now - in_flight.front().first);
        worst = std::max(worst, now - in_flight.front().first);
        done += kBatch;
        in_flight.pop_front();
      }
    }
  }
};

TEST(AdaptiveWindow, KeepsTheAckDelayAtTheTargetWithFullThroughput) {
  for (const double rate : {2e6, 50e6, 300e6}) {
    AckLoop loop{AdaptiveWindow({}), rate};
    loop.run(seconds(5));
    loop.done = 0;
    loop.worst = {};
    loop.run(seconds(5));
    EXPECT_GE(loop.done / 5, 0.95 * rate);
    EXPECT_LT(loop.worst, milliseconds(75)) << rate;
  }
}

TEST(AdaptiveWindow, DoesNotGrowWhileTheApplicationIsTheLimit) {
  AckLoop loop{AdaptiveWindow({}), 300e6};
  loop.run(seconds(20), 1e6);
  EXPECT_EQ(loop.window.limit(), AdaptiveWindow::Settings{}.start);
}

TEST(AdaptiveWindow, ShrinksWhenTheBrokerSlowsDownAndOneRecordAlwaysPasses) {
  AckLoop loop{AdaptiveWindow({}), 300e6};
  loop.run(seconds(3));
  loop.bytes_per_second = 5e6;
  loop.run(seconds(10));
  loop.worst = {};
  loop.run(seconds(3));
  EXPECT_LT(loop.worst, milliseconds(75));
  AdaptiveWindow small({.floor = 100, .start = 100, .ceiling = 100});
  EXPECT_TRUE(small.room(1'000'000));
  small.sent(1'000'000);
  EXPECT_FALSE(small.room(1));
}

}  // namespace
}  // namespace weir::flow
