#include "flow/gate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace weir::flow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const MonoTime kStart{seconds(100)};
const TopicPartition kPartition{"logs", PartitionId(0)};

struct GateTest : ::testing::Test {
  MemoryBudget budget{10'000};
  Journal journal;
  MonoTime now = kStart;
  Gate make(GateSettings settings = {}) { return Gate(std::move(settings), budget, journal, now); }
};

TEST_F(GateTest, FreeGateAdmitsAndChargesNothingItself) {
  Gate gate = make();
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(gate.admit(now, 1000, "logs"));
  EXPECT_EQ(gate.state(now).limited_by, LimitedBy::kNothing);
}

TEST_F(GateTest, MemoryIsHeldUntilTheChargeGoes) {
  Gate gate = make();
  auto a = gate.hold(now, 6000);
  ASSERT_TRUE(a);
  EXPECT_FALSE(gate.hold(now, 6000));
  EXPECT_EQ(gate.state(now).limited_by, LimitedBy::kMemory);
  a.reset();
  EXPECT_TRUE(gate.hold(now, 6000));
}

TEST_F(GateTest, RateRefusesWithTheTimeToAskAgain) {
  Gate gate = make({.records_per_second = 100, .records_burst = 1});
  EXPECT_TRUE(gate.admit(now, 10, "logs"));
  const auto refused = gate.admit(now, 10, "logs");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().by, LimitedBy::kMessageRate);
  EXPECT_GT(refused.error().retry_at, now);
  EXPECT_TRUE(gate.admit(now + milliseconds(11), 10, "logs"));
  EXPECT_EQ(gate.state(now + milliseconds(11)).why, "own limit of 100 records/s");
  EXPECT_EQ(gate.limited_for(now + seconds(9), LimitedBy::kMessageRate), milliseconds(11));
}

TEST_F(GateTest, ARefusalUsesUpNothing) {
  Gate gate = make({.bytes_per_second = 1000, .bytes_burst = 1000, .end_to_end = EndToEndWindow::Settings{.floor = 1}});
  auto permit = gate.admit(now, 10, "logs");
  for (int i = 0; i < 100; ++i) {
    const auto refused = gate.admit(now, 100, "logs");
    EXPECT_EQ(refused.error().by, LimitedBy::kConsumer);
  }
  permit->dropped();
  EXPECT_TRUE(gate.admit(now, 990, "logs"));
}

TEST_F(GateTest, DirectiveIsScopedRenewedAndExpires) {
  Gate gate = make({.client_id = "agent"});
  Directive d{.scope = {.topic = "logs"}, .records_per_second = 10.0, .reason = "lag", .expires = now + seconds(10)};
  gate.direct(now, d);
  EXPECT_TRUE(gate.admit(now, 10, "logs"));
  EXPECT_EQ(gate.admit(now, 10, "logs").error().by, LimitedBy::kDirective);
  EXPECT_TRUE(gate.admit(now, 10, "logs_error"));
  // Renewed every second: 10 a second, no burst each time.
  int admitted = 0;
  for (int ms = 0; ms < 5000; ms += 10) {
    now += milliseconds(10);
    if (ms % 1000 == 0) {
      d.expires = now + seconds(10);
      gate.direct(now, d);
    }
    while (gate.admit(now, 10, "logs")) ++admitted;
  }
  EXPECT_NEAR(admitted, 50, 2);
  now += seconds(11);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(gate.admit(now, 10, "logs"));
  EXPECT_EQ(journal.decisions().back().why, "expired");
}

TEST_F(GateTest, PauseOfOnePartitionLeavesTheOthersAndPauseOfAllEndsByItself) {
  Gate gate = make();
  gate.direct(now, {.scope = {.topic = "logs", .partition = PartitionId(3)},
                    .pause = true,
                    .reason = "x",
                    .expires = now + seconds(5)});
  EXPECT_FALSE(gate.admit(now, 1, "logs", PartitionId(3)));
  EXPECT_FALSE(gate.admit(now, 1, "logs"));
  EXPECT_TRUE(gate.admit(now, 1, "logs", PartitionId(4)));
  gate.undirect(now, {.topic = "logs", .partition = PartitionId(3)});
  EXPECT_TRUE(gate.admit(now, 1, "logs", PartitionId(3)));
  gate.pause(now, now + seconds(1), {SignalKind::kLagRecords, 2e6}, "lag above max_lag");
  EXPECT_EQ(gate.admit(now, 1, "logs").error().retry_at, now + seconds(1));
  EXPECT_EQ(gate.state(now).why, "paused for 1.0 s more: lag above max_lag");
  EXPECT_TRUE(gate.admit(now + seconds(1), 1, "logs"));
}

TEST_F(GateTest, WindowsOpenByOutcomesAndProgress) {
  Gate gate = make({.adaptive = AdaptiveWindow::Settings{.floor = 100, .start = 100, .ceiling = 100},
                    .end_to_end = EndToEndWindow::Settings{.floor = 3}});
  std::vector<Permit> permits;
  for (int i = 0; i < 2; ++i) permits.push_back(std::move(*gate.admit(now, 50, "logs")));
  EXPECT_EQ(gate.admit(now, 50, "logs").error().by, LimitedBy::kAckDelay);
  permits[0].succeeded(now, kPartition, Offset(0));
  permits[0] = std::move(*gate.admit(now, 50, "logs"));
  EXPECT_EQ(gate.admit(now, 50, "logs").error().by, LimitedBy::kConsumer);
  permits[1].succeeded(now, kPartition, Offset(1));
  EXPECT_EQ(gate.admit(now, 50, "logs").error().by, LimitedBy::kConsumer);
  gate.consumed(kPartition, Offset(1));
  gate.reported(now);
  EXPECT_TRUE(gate.admit(now, 50, "logs"));  // and dropped at once
  EXPECT_EQ(gate.end_to_end()->unconsumed(), 2);
}

RC_GTEST_PROP(Gate, EveryOutcomeGivesItsRoomBack, (std::vector<std::uint8_t> steps)) {
  MemoryBudget budget(1'000'000);
  Journal journal;
  Gate gate({.adaptive = AdaptiveWindow::Settings{}, .end_to_end = EndToEndWindow::Settings{}}, budget, journal,
            kStart);
  std::vector<Permit> permits;
  MonoTime now = kStart;
  std::int64_t offset = 0;
  for (const auto step : steps) {
    now += milliseconds(step);
    if (step % 3 != 0 || permits.empty()) {
      if (auto permit = gate.admit(now, 100 + step, "logs")) permits.push_back(std::move(*permit));
    } else if (step % 2 == 0) {
      permits.back().succeeded(now, kPartition, Offset(offset++));
      permits.pop_back();
    } else {
      permits.pop_back();
    }
    RC_ASSERT(gate.end_to_end()->unconsumed() == std::int64_t(permits.size()) + offset);
  }
  permits.clear();
  gate.consumed(kPartition, Offset(offset));
  RC_ASSERT(gate.adaptive()->in_flight() == 0u);
  RC_ASSERT(gate.end_to_end()->unconsumed() == 0);
}

}  // namespace
}  // namespace weir::flow
