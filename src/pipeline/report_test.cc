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
  EXPECT_EQ(to_json(report),
            R"({"offered":10,"read":7,"behind":3,"acked":0,"stored":0,"duplicates":0,"dead_lettered":0,)"
            R"("agent_in_memory":0,"sink_in_memory":0,"spooled":0,"shed":{"queue_full":2},"rejected":{},"lag":null,)"
            R"("lag_seconds":null,"latency_ms":{"p50":1.5,"p99":2.0,"max":3.0},)"
            R"("error_latency_ms":{"p50":0.0,"p99":0.0,"max":0.0},"peak_buffer_bytes":0})");
  EXPECT_TRUE(report.lost());
}

TEST(ReportTest, StatusLineNamesTheLimitAndWhy) {
  Status status{.read = 1234567, .acked = 12, .stored = 3, .read_per_s = 4000.4, .lag = 5};
  status.limit = {
      .limited_by = LimitedBy::kConsumer, .limit = 100, .signal = {}, .why = "consumer drains 20 records/s"};
  EXPECT_EQ(status_line(status),
            "read 1,234,567 (4,000/s)  acked 12  stored 3 (0/s)  lag 5  limit consumer: consumer drains 20 records/s  "
            "p50 0 ms  p99 0 ms");
}

}  // namespace
}  // namespace weir::pipeline
