#include "base/units.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(UnitsTest, SizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_size("64MiB"), 67108864u);
  EXPECT_EQ(parse_size("67108864"), 67108864u);
  EXPECT_EQ(parse_size("10MB"), 10'000'000u);
  EXPECT_EQ(parse_size("512B"), 512u);
  EXPECT_EQ(parse_size("0"), 0u);
  for (const char* bad : {"", "MiB", "-1", "1.5MiB", "64 MiB", "99999999999999GiB", "64mib", "0x10"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(UnitsTest, TimesAsPeopleWriteThem) {
  EXPECT_EQ(parse_duration("500ms"), Duration(500ms));
  EXPECT_EQ(parse_duration("1.5s"), Duration(1500ms));
  EXPECT_EQ(parse_duration("10", 1ms), Duration(10ms));
  EXPECT_EQ(parse_duration("2h"), Duration(2h));
  for (const char* bad : {"", "10", "-5s", "s", "1e99s", "nan s", "infs", "99999999999999h"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(UnitsTest, WhatIsPrintedCanBeReadBack) {
  for (const Duration d : {Duration(500ms), Duration(20s), Duration(5min), Duration(7us), Duration(90s)})
    EXPECT_EQ(parse_duration(format_duration(d)), d);
  EXPECT_EQ(format_size(64 * kMiB), "64MiB");
  EXPECT_EQ(format_size(1536 * kKiB), "1.5MiB");
  EXPECT_EQ(parse_size(format_size(16 * kKiB)), 16 * kKiB);
}

TEST(UnitsTest, IntegersKeepTheirRange) {
  EXPECT_EQ(parse_integer("-1", -1, 5), -1);
  EXPECT_FALSE(parse_integer("6", -1, 5));
  EXPECT_FALSE(parse_integer("5x", -1, 5));
}

}  // namespace
}  // namespace weir
