#include "broker/complaints.h"

#include <gtest/gtest.h>

namespace weir::broker {
namespace {

TEST(Complaints, EachKindIsSaidOnceInAWhileAndNothingGoesUncounted) {
  Complaints complaints;
  const MonoTime start{};
  EXPECT_TRUE(complaints.warn(start, "refused appends", "the disk is full"));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(complaints.warn(start, "refused appends", "the disk is full"));
  EXPECT_TRUE(complaints.warn(start, "closed connections", "not a Kafka client")) << "another kind";
  EXPECT_TRUE(complaints.warn(start + std::chrono::seconds(30), "refused appends", "the disk is full"));
  EXPECT_FALSE(complaints.warn(start + std::chrono::seconds(31), "refused appends", "the disk is full"));
  EXPECT_EQ(complaints.finish(), 1u) << "the five were told by the second line";
  EXPECT_EQ(complaints.finish(), 0u);
}

}  // namespace
}  // namespace weir::broker
