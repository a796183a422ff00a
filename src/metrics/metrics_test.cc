#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <thread>

#include "metrics/histogram.h"
#include "metrics/ledger.h"
#include "metrics/names.h"
#include "metrics/tally.h"

namespace weir::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

RC_GTEST_PROP(LatencyHistogram, PercentilesAreWithinTheirBucketOfTheTrueOnes,
              (std::vector<std::uint32_t> raw, bool split)) {
  RC_PRE(!raw.empty());
  LatencyHistogram whole, a, b;
  std::vector<Duration> times;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const Duration d = microseconds(raw[i] >> (raw[i] % 24));
    times.push_back(d);
    whole.record(d);
    (split && i % 2 ? a : b).record(d);
  }
  std::sort(times.begin(), times.end());
  a.merge(b);
  for (const double p : {0.0, 0.5, 0.9, 0.99, 1.0}) {
    const auto rank = std::max<std::size_t>(1, std::size_t(std::ceil(p * double(times.size()))));
    const double exact = to_seconds(times[rank - 1]), shown = to_seconds(whole.percentile(p));
    RC_ASSERT(shown >= exact && shown <= exact * (1 + 1.0 / 64) + 1e-6);
    RC_ASSERT(a.percentile(p) == whole.percentile(p));
  }
  RC_ASSERT(whole.max() == times.back());
  RC_ASSERT(whole.at_most(times.back()) == times.size());
}

TEST(LatencyHistogram, TakesAnyDurationAndIsEmptyAtFirst) {
  LatencyHistogram h;
  EXPECT_EQ(h.percentile(0.99), Duration::zero());
  h.record(-seconds(1));
  h.record(std::chrono::hours(10'000));
  EXPECT_EQ(h.count(), 2u);
  EXPECT_EQ(h.max(), std::chrono::hours(10'000));
  EXPECT_EQ(h.percentile(0.5), Duration::zero());
  h.record(from_seconds(2e9), 100);  // a record that says 1970
  EXPECT_DOUBLE_EQ(h.sum(), 2e11 + 36e6);
  EXPECT_GT(h.summary().mean, std::chrono::hours(10'000));
}

TEST(Ledger, StagesSumToTheTotalAlsoWhenMarksAreMissing) {
  StageTimes times;
  const MonoTime start{seconds(10)};
  times.stamp(Mark::kRead, start);
  times.stamp(Mark::kQueued, start + milliseconds(2));
  times.stamp(Mark::kSent, start + milliseconds(102));
  times.stamp(Mark::kAcked, start + milliseconds(105));
  times.stamp(Mark::kStored, start + milliseconds(125));
  EXPECT_EQ(times.stage(Mark::kFetched), std::nullopt);
  EXPECT_EQ(*times.stage(Mark::kStored), milliseconds(20));
  Duration sum{};
  for (std::size_t i = 0; i < kMarks; ++i) sum += times.stage(Mark(i)).value_or(Duration::zero());
  EXPECT_EQ(sum, times.total());
  Ledger ledger;
  ledger.add(times);
  EXPECT_EQ(ledger.line(),
            "queued 2.0 ms (2 %), sent 100.0 ms (80 %), acked 3.0 ms (2 %), stored 20.0 ms (16 %), total 125.0 ms");
}

TEST(Tally, NamesEveryTermWhenTheSumIsWrong) {
  AgentTally tally{.read = 10, .acked = 5, .in_memory = 2, .shed = {{"disk_full", 1}}, .rejected = {{"too_large", 2}}};
  EXPECT_EQ(tally.check(), std::nullopt);
  tally.acked = 4;
  EXPECT_EQ(tally.difference(), 1);
  EXPECT_EQ(*tally.check(),
            "read 10 is not acked 4 + spooled 0 + in memory 2 + shed(disk_full) 1 + rejected(too_large) 2: 1 "
            "unaccounted for");
  SinkTally sink{.fetched = 3, .stored = 2, .duplicates = 2};
  EXPECT_EQ(*sink.check(), "fetched 3 is not stored 2 + duplicates 2 + dead-lettered 0 + in memory 0: 1 counted twice");
}

TEST(Registry, WritesThePrometheusTextFormat) {
  Registry registry;
  registry.counter(kAgentShed, {{"reason", "a \"b\"\\\n"}}).add(3);
  registry.gauge(kConsumerLag, {{"group", "g"}, {"topic", "t"}, {"partition", "0"}}).set(12);
  registry.latency(kBrokerFlushSeconds).record(milliseconds(3));
  const std::string text = registry.text();
  EXPECT_NE(text.find("# TYPE weir_agent_shed_total counter\nweir_agent_shed_total{reason=\"a \\\"b\\\"\\\\\\n\"} 3\n"),
            std::string::npos);
  EXPECT_NE(text.find("kafka_consumer_lag{group=\"g\",topic=\"t\",partition=\"0\"} 12\n"), std::string::npos);
  EXPECT_NE(text.find("weir_broker_flush_seconds_bucket{le=\"0.0025\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("weir_broker_flush_seconds_bucket{le=\"0.005\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("weir_broker_flush_seconds_sum 0.003\nweir_broker_flush_seconds_count 1\n"), std::string::npos);
  registry.remove(kConsumerLag, {{"group", "g"}, {"topic", "t"}, {"partition", "0"}});
  EXPECT_EQ(registry.text().find("kafka_consumer_lag"), std::string::npos);
}

TEST(Registry, HooksRunAtCollectionUntilTheirHandleGoes) {
  Registry registry;
  int runs = 0;
  auto hook = registry.on_collect([&] { registry.gauge(kBrokerConnections).set(++runs); });
  EXPECT_NE(registry.text().find("weir_broker_connections 1\n"), std::string::npos);
  hook.reset();
  (void)registry.text();
  EXPECT_EQ(runs, 1);
}

TEST(Registry, CountsFromManyThreads) {
  Registry registry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        registry.counter(kAgentRead).add();
        registry.latency(kSinkStoreSeconds).record(milliseconds(i));
        if (i % 250 == 0) (void)registry.text();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(registry.counter(kAgentRead).value(), 4000u);
  EXPECT_EQ(registry.latency(kSinkStoreSeconds).summary().count, 4000u);
}

TEST(Names, AreWellFormedUniqueAndListedInTheDocs) {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/metrics.md");
  ASSERT_TRUE(page) << "docs/metrics.md is missing";
  std::vector<std::string> listed, named;
  const std::regex row("^\\| `([a-z0-9_]+)` \\| (counter|gauge|histogram) \\|.*");
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, row)) listed.push_back(match[1].str() + " " + match[2].str());
  }
  for (const Metric& metric : all_metrics()) {
    const char* type = metric.type == kCounter ? "counter" : metric.type == kGauge ? "gauge" : "histogram";
    named.push_back(std::string(metric.name) + " " + type);
    EXPECT_EQ(metric.type == kCounter, metric.name.ends_with("_total")) << metric.name;
    EXPECT_TRUE(metric.name.starts_with("weir_") || metric.name.starts_with("kafka_")) << metric.name;
  }
  EXPECT_TRUE(std::is_sorted(named.begin(), named.end()));
  EXPECT_EQ(std::adjacent_find(named.begin(), named.end()), named.end());
  EXPECT_EQ(listed, named);
}

}  // namespace
}  // namespace weir::metrics
