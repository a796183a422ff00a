#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <deque>
#include <random>

#include "flow/drain_rate.h"
#include "flow/journal.h"
#include "flow/lag_law.h"
#include "flow/lag_time.h"

namespace weir::flow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const MonoTime kStart{seconds(100)};

TEST(LagLaw, SettlesAtTheTargetForThreeTimesTheCapacityWithNoiseAndDelay) {
  for (const double delay : {0.5, 1.0, 2.0, 4.0}) {
    constexpr double kDrain = 1000, kOffered = 3000;
    std::mt19937 random(7);
    std::normal_distribution<double> noise(1.0, 0.1);
    LagLaw law({});
    LagTime lag_time;
    DrainRate drain({.period = seconds(1)});
    double end = 0, committed = 0, rate = kOffered, peak = 0, late_sum = 0;
    int late = 0;
    std::deque<std::pair<double, double>> on_the_way;  // when a rate takes effect
    for (int tenth = 0; tenth < 3000; ++tenth) {
      const double t = tenth / 10.0;
      while (!on_the_way.empty() && on_the_way.front().first <= t) {
        rate = on_the_way.front().second;
        on_the_way.pop_front();
      }
      end += std::min(kOffered, rate) * 0.1;
      committed = std::min(end, committed + kDrain * 0.1 * noise(random));
      if (tenth % 10 != 9) continue;
      const MonoTime now = kStart + from_seconds(t);
      lag_time.sample(now, Offset(std::int64_t(end)));
      drain.update(now, std::int64_t(committed), std::int64_t(end - committed));
      const auto lag = lag_time.of(now, Offset(std::int64_t(committed)));
      peak = std::max(peak, to_seconds(lag->time));
      const auto limit = law.update(lag->time, drain.mean(), std::int64_t(end - committed));
      on_the_way.emplace_back(t + delay, limit.value_or(kOffered));
      if (t < (delay < 4 ? 120 : 200)) continue;  // the longest delay takes longest to settle
      EXPECT_NEAR(to_seconds(lag->time), 5.0, 1.0) << "at " << t << " with delay " << delay;
      late_sum += to_seconds(lag->time);
      ++late;
    }
    EXPECT_GE(late_sum / late, 4.8) << delay;
    EXPECT_LE(late_sum / late, 5.2) << delay;
    EXPECT_LT(peak, 13) << delay;
  }
}

TEST(LagLaw, FloorReleaseInStepsAndBlindness) {
  LagLaw law({});
  EXPECT_EQ(law.update(seconds(1), 1000), std::nullopt);
  EXPECT_NEAR(*law.update(seconds(5), 1000), 1000, 1e-6);
  EXPECT_NEAR(*law.update(seconds(10), 1000), 500, 1e-6);
  EXPECT_EQ(*law.update(std::chrono::hours(1), 1000), 100);
  // Cannot measure: nothing changes, then it releases step by step.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*law.update(std::nullopt, std::nullopt), 100);
  EXPECT_EQ(law.phase(), LagLaw::Phase::kBlind);
  EXPECT_EQ(*law.update(std::nullopt, std::nullopt), 125);
  // Under half the target: a step a period, then free.
  double last = *law.update(seconds(5), 1000);
  int steps = 0;
  while (const auto limit = law.update(seconds(2), 1000)) {
    EXPECT_NEAR(*limit / last, 1.25, 1e-9);
    last = *limit;
    ASSERT_LT(++steps, 20);
  }
  EXPECT_EQ(law.phase(), LagLaw::Phase::kFree);
  EXPECT_EQ(law.update(std::nullopt, std::nullopt), std::nullopt);
}

TEST(LagLaw, LooksAtTheLongerOfTheLagThatIsAndTheOneThatComes) {
  LagLaw law({});
  // A burst of long ago, nearly worked off: T decides.
  EXPECT_NEAR(*law.update(seconds(10), 1000, 2000), 500, 1e-6);
  EXPECT_EQ(law.lag(), Duration(seconds(10)));
  // A burst of just now: what it will take decides.
  EXPECT_NEAR(*law.update(seconds(1), 1000, 10'000), 500, 1e-6);
  EXPECT_EQ(law.lag(), Duration(seconds(10)));
  // Released only under half of the target by both.
  EXPECT_GT(*law.update(seconds(2), 1000, 1000), 500);
  EXPECT_EQ(law.phase(), LagLaw::Phase::kReleasing);
}

RC_GTEST_PROP(LagLaw, LimitIsNeverUnderTheFloorAndFallsAsTheLagGrows, (std::uint32_t lag_ms, std::uint32_t drain)) {
  LagLaw law({});
  const auto at = law.update(seconds(5) + milliseconds(lag_ms % 1'000'000), drain % 1'000'000 + 1.0);
  const auto later = law.update(seconds(6) + milliseconds(lag_ms % 1'000'000), drain % 1'000'000 + 1.0);
  RC_ASSERT(*at >= 100 && *later >= 100 && *later <= *at);
}

TEST(LagTime, InterpolatesBetweenSamples) {
  LagTime lag;
  EXPECT_EQ(lag.of(kStart, Offset(5)), std::nullopt);
  for (int s = 0; s <= 10; ++s) lag.sample(kStart + seconds(s), Offset(s * 100));
  const MonoTime now = kStart + seconds(10);
  EXPECT_EQ(lag.of(now, Offset(1000))->time, Duration::zero());
  EXPECT_EQ(lag.of(now, Offset(2000))->time, Duration::zero());
  EXPECT_NEAR(to_seconds(lag.of(now, Offset(450))->time), 5.5, 1e-6);
  // A group that stands still keeps falling behind, even when nothing is produced.
  EXPECT_NEAR(to_seconds(lag.of(now + seconds(60), Offset(450))->time), 65.5, 1e-6);
}

TEST(LagTime, CommitOlderThanEverySampleIsALowerBoundAndAQuietTopicIsNotLate) {
  LagTime lag;
  lag.sample(kStart, Offset(1000));
  EXPECT_EQ(lag.of(kStart + seconds(3), Offset(10))->time, seconds(3));
  EXPECT_FALSE(lag.of(kStart + seconds(3), Offset(10))->exact);
  // A day without records, then one: it is as late as it is old, not a day.
  lag.sample(kStart + seconds(86400), Offset(1000));
  lag.sample(kStart + seconds(86401), Offset(1001));
  EXPECT_EQ(lag.of(kStart + seconds(86403), Offset(1000))->time, seconds(3));
}

TEST(LagTime, RecreatedTopicForgetsAndMemoryStaysBounded) {
  LagTime lag(16);
  for (int s = 0; s < 100'000; ++s) lag.sample(kStart + seconds(s), Offset(s * 10));
  EXPECT_LE(lag.samples(), 16u);
  EXPECT_NEAR(to_seconds(lag.of(kStart + seconds(99'999), Offset(99'995 * 10))->time), 4, 1e-6);
  EXPECT_NEAR(to_seconds(lag.of(kStart + seconds(99'999), Offset(50'000 * 10))->time), 49'999, 10);
  lag.sample(kStart + seconds(100'000), Offset(3));
  EXPECT_EQ(lag.samples(), 1u);
}

TEST(DrainRate, CountsOnlyBusyPeriodsAndKeepsThePeak) {
  DrainRate drain({.period = seconds(1)});
  EXPECT_EQ(drain.peak(), std::nullopt);
  std::int64_t consumed = 0;
  MonoTime now = kStart;
  const auto period = [&](std::int64_t records, std::int64_t backlog) {
    consumed += records;
    now += seconds(1);
    drain.update(now, consumed, backlog);
  };
  drain.update(now, 0, 50);
  period(1000, 50);
  period(900, 50);
  EXPECT_NEAR(*drain.peak(), 1000, 1e-6);
  EXPECT_NEAR(*drain.mean(), 980, 1e-6);
  // Idle for a long time: neither falls.
  for (int i = 0; i < 100; ++i) period(3, 0);
  EXPECT_NEAR(*drain.peak(), 1000, 1e-6);
  EXPECT_NEAR(*drain.mean(), 980, 1e-6);
  // Busy and slower: the peak follows after its periods are over.
  for (int i = 0; i < 6; ++i) period(200, 50);
  EXPECT_NEAR(*drain.peak(), 200, 1e-6);
}

TEST(Journal, IsBoundedAndNumbersWithoutGaps) {
  Journal journal(3);
  for (int i = 0; i < 10; ++i) {
    journal.add({.law = "lag law",
                 .scope = {.topic = "logs"},
                 .signal = {SignalKind::kLagTime, 5.5},
                 .limit = 2940.0,
                 .why = "x"});
  }
  ASSERT_EQ(journal.decisions().size(), 3u);
  EXPECT_EQ(journal.decisions().front().number, 8u);
  EXPECT_EQ(to_string(journal.decisions().back()), "lag law: topic logs limited to 2940 (lag time 5.5 s): x");
}

}  // namespace
}  // namespace weir::flow
