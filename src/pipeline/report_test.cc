#include "pipeline/report.h"

#include <gtest/gtest.h>

namespace weir::pipeline {
namespace {

using namespace std::chrono_literals;

TEST(ReportTest, JsonIsOneLineWithEveryKeyAndUnknownIsNull) {
  Report report;
  report.offered = 10;
  report.read = 7;
  report.shed["queue_full"] = 2;
  report.latency = {.count = 1, .p50 = 1500us, .p99 = 2ms, .max = 3ms, .mean = 2ms};
  EXPECT_EQ(
      to_json(report),
      R"({"offered":10,"read":7,"behind":3,"acked":0,"stored":0,"duplicates":0,"dead_lettered":0,)"
      R"("agent_in_memory":0,"sink_in_memory":0,"spooled":0,"shed":{"queue_full":2},"rejected":{},"lag":null,)"
      R"("lag_seconds":null,"latency_ms":{"p50":1.5,"p99":2.0,"max":3.0},)"
      R"("error_latency_ms":{"p50":0.0,"p99":0.0,"max":0.0},"peak_buffer_bytes":0,"long_lines":0,"lost_bytes":{}})");
  EXPECT_TRUE(report.lost());
}

TEST(ReportTest, LossesAreExplainedWithTheirRemedy) {
  const auto lines = loss_lines({{"stopped", 2000}}, {{"too_large", 1}, {"no_topic", 2}}, 1'000'000);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "shed 2,000 records: stopped (taken from standard input, not sent before the end; raise --drain)");
  EXPECT_EQ(
      lines[1],
      "rejected 2 records: no_topic (the broker will never take it); see rejected.jsonl in the agent's directory");
  EXPECT_EQ(lines[2],
            "rejected 1 record: too_large (limit 1,000,000 bytes; raise max.request.size, and message.max.bytes of the "
            "broker "
            "with it); see rejected.jsonl in the agent's directory");
  EXPECT_EQ(damage_lines(1, {}, {{"truncated", 5}}),
            (std::vector<std::string>{
                "1 line longer than 160KiB (line_limit): cut there",
                "at least 5 bytes of the files were gone before they were read: truncated or rewritten in place"}));
  EXPECT_TRUE(damage_lines(0, {}, {}).empty());
}

TEST(ReportTest, WhatAnEndLeavesBehindIsSaidOnlyWhenThereIsSomething) {
  using std::chrono::seconds;
  EXPECT_EQ(left_behind(0, "", seconds(20), 100), "");
  EXPECT_EQ(left_behind(0, "no broker answered", seconds(20)),
            "no broker answered within 20s; what is in files is read again at the next start");
  EXPECT_EQ(left_behind(1, "", seconds(20)),
            "1 entry read and not acknowledged within 20s; what is in files is read again at the next start");
  EXPECT_EQ(left_behind(2000, "no broker answered", seconds(5), 2048),
            "2,000 entries read and not acknowledged within 5s, 2KiB not read; what is in files is read again at the "
            "next start");
}

TEST(ReportTest, LagIsNeverShownBelowWhatIsKnownToWait) {
  EXPECT_EQ(shown_lag(0, 1000, 400), 600);
  EXPECT_EQ(shown_lag(5000, 1000, 400), 5000);  // left from an earlier run
  EXPECT_EQ(shown_lag(7, 0, 400), 7);
  EXPECT_EQ(shown_lag(std::nullopt, 1000, 400), std::nullopt);
  EXPECT_TRUE(status_line({}).ends_with("lag ?  limit none  p50 ?  p99 ?")) << status_line({});
}

TEST(ReportTest, StatusLineNamesTheLimitAndWhy) {
  Status status{.read = 1234567,
                .acked = 12,
                .stored = 3,
                .read_per_s = 4000.4,
                .lag = 5,
                .limit = {},
                .latency = {.count = 1, .p50 = 12ms, .p99 = 80ms, .max = {}, .mean = {}}};
  status.limit = {
      .limited_by = LimitedBy::kConsumer, .limit = 100, .signal = {}, .why = "consumer drains 20 records/s"};
  EXPECT_EQ(status_line(status),
            "read 1,234,567 (4,000/s)  acked 12  stored 3 (0/s)  lag 5  limit consumer: consumer drains 20 records/s  "
            "p50 12 ms  p99 80 ms");
}

}  // namespace
}  // namespace weir::pipeline
