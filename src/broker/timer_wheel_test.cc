#include "broker/timer_wheel.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace weir::broker {
namespace {

using std::chrono::milliseconds;

RC_GTEST_PROP(TimerWheel, AgreesWithASortedListOfDeadlines, ()) {
  const MonoTime start{milliseconds(1000)};
  TimerWheel wheel(start);
  std::map<std::uint64_t, MonoTime> model;
  MonoTime now = start;
  const auto steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto id = *rc::gen::inRange<std::uint64_t>(1, 12);
    const auto scale = *rc::gen::element(1, 50, 3000, 200000, 9000000);
    const milliseconds distance(*rc::gen::inRange(0, 70) * scale);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        wheel.cancel(id);
        model.erase(id);
        break;
      case 1: {
        now += distance;
        std::vector<std::uint64_t> due;
        wheel.expire(now, due);
        for (const auto one : due) {
          RC_ASSERT(model.contains(one));
          RC_ASSERT(model[one] <= now);
          model.erase(one);
        }
        for (const auto& [left, when] : model) RC_ASSERT(when > now - milliseconds(1));
        break;
      }
      default: wheel.schedule(id, now + distance); model[id] = now + distance;
    }
    RC_ASSERT(wheel.size() == model.size());
    RC_ASSERT(wheel.next().has_value() == !model.empty());
    for (const auto& [left, when] : model) RC_ASSERT(*wheel.next() <= std::max(when, now) + milliseconds(1));
  }
}

TEST(TimerWheel, HoldsADeadlineBeyondItsReach) {
  TimerWheel wheel(MonoTime{});
  wheel.schedule(1, MonoTime{std::chrono::hours(30)});
  std::vector<std::uint64_t> due;
  wheel.expire(MonoTime{std::chrono::hours(29)}, due);
  EXPECT_TRUE(due.empty());
  wheel.expire(MonoTime{std::chrono::hours(30)}, due);
  EXPECT_EQ(due, std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace weir::broker
