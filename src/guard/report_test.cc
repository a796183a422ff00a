#include "guard/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::guard {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Report, AgeIsThatOfTheLastMeasurementThatWorked) {
  LagSnapshot snapshot{.number = 1, .taken = MonoTime(100s), .last_complete = MonoTime(100s)};
  EXPECT_THAT(lag_to_json(snapshot, MonoTime(102s)), HasSubstr("\"age_s\":2.0,"));
  snapshot = {.number = 8, .taken = MonoTime(107s), .last_complete = MonoTime(100s), .errors = {"no broker"}};
  EXPECT_THAT(lag_to_json(snapshot, MonoTime(108s)), HasSubstr("\"age_s\":8.0,"));
  snapshot.last_complete.reset();
  EXPECT_THAT(lag_to_json(snapshot, MonoTime(108s)), HasSubstr("\"age_s\":null,"));
}

}  // namespace
}  // namespace weir::guard
