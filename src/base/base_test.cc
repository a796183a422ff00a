#include <gtest/gtest.h>

#include <thread>

#include "base/bounded_queue.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(StrongTest, PositionsMoveAndMeasure) {
  const Offset a(5);
  EXPECT_EQ(a + 3, Offset(8));
  EXPECT_EQ(Offset(8) - a, 3);
  EXPECT_LT(a, Offset(6));
  static_assert(!std::is_convertible_v<Offset, std::int64_t>);
}

TEST(ManualClockTest, WallCanStepAlone) {
  ManualClock clock;
  const Now before = clock.now();
  clock.advance(2s);
  clock.step_wall(-10s);
  EXPECT_EQ(clock.now().mono - before.mono, 2s);
  EXPECT_EQ(clock.now().wall - before.wall, -8s);
}

TEST(BoundedQueueTest, FullLeavesTheItemAndClosedDrains) {
  BoundedQueue<std::string> queue(1);
  std::string a = "a", b = "b";
  EXPECT_EQ(queue.try_push(a), BoundedQueue<std::string>::Push::kOk);
  EXPECT_EQ(queue.try_push(b), BoundedQueue<std::string>::Push::kFull);
  EXPECT_EQ(b, "b");
  queue.close();
  EXPECT_EQ(queue.try_push(b), BoundedQueue<std::string>::Push::kClosed);
  EXPECT_EQ(queue.pop(0s), "a");
  EXPECT_EQ(queue.pop(0s), std::nullopt);
}

TEST(BoundedQueueTest, BlockedPushGoesOnWhenThereIsRoom) {
  BoundedQueue<int> queue(1);
  int first = 1;
  ASSERT_EQ(queue.try_push(first), BoundedQueue<int>::Push::kOk);
  std::thread other([&] {
    int second = 2;
    EXPECT_EQ(queue.push(second, 1h), BoundedQueue<int>::Push::kOk);
  });
  EXPECT_EQ(queue.pop(1h), 1);
  EXPECT_EQ(queue.pop(1h), 2);
  other.join();
}

TEST(PayloadTest, FlattenKeepsOrderAndSlicesShareTheBuffer) {
  const SharedBytes whole(to_buffer(as_bytes("hello world")));
  Payload payload;
  payload.append(whole.slice(6, 5));
  payload.append(to_buffer(as_bytes("-")));
  payload.append(whole.slice(0, 5));
  EXPECT_EQ(payload.size(), 11u);
  EXPECT_EQ(as_text(*payload.flatten()), "world-hello");
}

TEST(LogEveryTest, CountsWhatItHeldBack) {
  log::Every every(30s);
  ManualClock clock;
  EXPECT_TRUE(every.allow(clock.now().mono));
  EXPECT_FALSE(every.allow(clock.now().mono));
  EXPECT_FALSE(every.allow(clock.now().mono));
  clock.advance(30s);
  EXPECT_TRUE(every.allow(clock.now().mono));
  EXPECT_EQ(every.suppressed(), 2u);
  EXPECT_FALSE(every.allow(clock.now().mono));
  EXPECT_EQ(every.take_held(), 1u);
  EXPECT_EQ(every.take_held(), 0u);
}

}  // namespace
}  // namespace weir
