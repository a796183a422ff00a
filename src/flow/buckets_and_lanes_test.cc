#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "flow/lanes.h"
#include "flow/memory_budget.h"
#include "flow/token_bucket.h"
#include "flow/watermarks.h"

namespace weir::flow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const MonoTime kStart{seconds(100)};

TEST(TokenBucket, RateJustUnderTheLimitWithJitterIsNeverRefused) {
  // Field: bucket 400/s, burst 400, input 399/s for 60 s.
  TokenBucket bucket(400, 400, kStart);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> jitter(-0.4, 0.4);
  int refused = 0;
  for (int i = 0; i < 399 * 60; ++i) {
    const MonoTime now = kStart + from_seconds((i + 1 + jitter(random)) / 399.0);
    if (bucket.ready(now)) {
      bucket.take(1);
    } else {
      ++refused;
    }
  }
  EXPECT_EQ(refused, 0);
}

TEST(TokenBucket, RecordLargerThanTheBurstPassesAndItsDebtIsPaid) {
  TokenBucket bucket(1000, 1000, kStart);
  ASSERT_TRUE(bucket.ready(kStart));
  bucket.take(5000);
  EXPECT_FALSE(bucket.ready(kStart + milliseconds(3999)));
  EXPECT_EQ(bucket.ready_at(kStart), kStart + seconds(4) + Duration(2));
  EXPECT_TRUE(bucket.ready(bucket.ready_at(kStart)));
}

RC_GTEST_PROP(TokenBucket, NeverAdmitsMoreThanRateTimesTimePlusBurst, ()) {
  const double rate = *rc::gen::inRange(1, 10000), burst = *rc::gen::inRange(1, 1000);
  const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 3000)));
  TokenBucket bucket(rate, burst, kStart);
  MonoTime now = kStart;
  double taken = 0;
  for (const int size : sizes) {
    RC_ASSERT(taken <= rate * to_seconds(now - kStart) + burst + 3000);
    now = bucket.ready_at(now);
    RC_ASSERT(bucket.ready(now));
    RC_ASSERT(taken < rate * to_seconds(now - kStart) + burst + 1e-3);
    bucket.take(size);
    taken += size;
  }
}

TEST(Watermarks, HoldsFromHighUntilLow) {
  Watermarks marks(500, 1000);
  EXPECT_FALSE(marks.update(999));
  EXPECT_TRUE(marks.update(1000));
  for (int level = 999; level > 500; --level) EXPECT_TRUE(marks.update(level));
  EXPECT_FALSE(marks.update(500));
  EXPECT_FALSE(marks.update(999));
  EXPECT_EQ(marks.holds(), 1u);
}

TEST(Lanes, DebugKeepsFivePercentAndNoErrorWaitsBehindIt) {
  // Field: 10 % ERROR, 90 % DEBUG at 5x capacity: 0 ERROR lost, DEBUG not starved.
  Lanes<int> lanes;
  int served_high = 0, served_low = 0, next_high = 0, next_low = 0;
  for (int tick = 0; tick < 20000; ++tick) {
    for (int i = 0; i < 5; ++i) lanes.push((tick * 5 + i) % 10 == 0 ? Lane::kHigh : Lane::kLow, tick * 5 + i);
    const Lane lane = *lanes.next();
    const int item = lanes.pop(lane);
    if (lane == Lane::kHigh) {
      EXPECT_GE(item, next_high);
      next_high = item;
      ++served_high;
    } else {
      EXPECT_GE(item, next_low);
      next_low = item;
      ++served_low;
    }
  }
  EXPECT_EQ(served_high + int(lanes.size(Lane::kHigh)), 10000);
  EXPECT_LE(lanes.size(Lane::kHigh), 1u);
  EXPECT_GE(served_low, 20000 / 20);
}

TEST(Lanes, FreshErrorGoesFirstAndFullHighLaneLeavesTheFloor) {
  Lanes<int> lanes;
  for (int i = 0; i < 100; ++i) lanes.push(Lane::kNormal, i);
  for (int i = 0; i < 10; ++i) lanes.pop(*lanes.next());
  lanes.push(Lane::kHigh, 1000);
  EXPECT_EQ(*lanes.next(), Lane::kHigh);
  for (int i = 0; i < 2000; ++i) lanes.push(Lane::kHigh, i);
  for (int i = 0; i < 2000; ++i) lanes.push(Lane::kLow, i);
  for (int i = 0; i < 2000; ++i) lanes.push(Lane::kNormal, i);
  std::array<int, kLanes> served{};
  for (int i = 0; i < 1000; ++i) {
    const Lane lane = *lanes.next();
    lanes.pop(lane);
    ++served[std::size_t(lane)];
  }
  EXPECT_NEAR(served[0], 800, 20);
  EXPECT_NEAR(served[1], 150, 10);
  EXPECT_NEAR(served[2], 50, 5);
  EXPECT_EQ(*lanes.next({true, true, false}), Lane::kLow);
}

RC_GTEST_PROP(MemoryBudget, IsNeverExceededAndEverythingComesBack, ()) {
  MemoryBudget budget(10000);
  std::vector<Charge> held;
  Bytes sum = 0;
  for (const auto& [bytes, drop] : *rc::gen::container<std::vector<std::pair<std::uint16_t, bool>>>(
           rc::gen::arbitrary<std::pair<std::uint16_t, bool>>())) {
    if (drop && !held.empty()) {
      sum -= held.back().bytes();
      held.pop_back();
    } else if (auto charge = budget.try_charge(bytes % 5000)) {
      sum += bytes % 5000;
      held.push_back(std::move(*charge));
    } else {
      RC_ASSERT(sum + bytes % 5000 > 10000u);
    }
    RC_ASSERT(budget.used() == sum);
    RC_ASSERT(budget.peak() >= sum && budget.peak() <= budget.limit());
  }
  held.clear();
  RC_ASSERT(budget.used() == 0u);
}

}  // namespace
}  // namespace weir::flow
