#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "bench/explain/explain.h"
#include "bench/seed/report.h"
#include "bench/seed/tweets.h"

namespace weir::bench {
namespace {

constexpr std::int64_t kT0 = 1618685061270;

// 1,000 messages, ten to a stamp of one millisecond, received one every 77 us from 10 ms on.
std::vector<Trip> growing() {
  std::vector<Trip> trips(1000);
  for (std::size_t i = 0; i < trips.size(); ++i) {
    const auto stamp = kT0 + static_cast<std::int64_t>(i / 10);
    const WallTime received = from_unix_ms(kT0 + 10) + std::chrono::microseconds(i * 77);
    const WallTime sent = from_unix_ms(stamp) - std::chrono::milliseconds(5);
    trips[i] = {sent,     sent + std::chrono::milliseconds(2),     sent + std::chrono::milliseconds(3), stamp,
                received, received + std::chrono::microseconds(77)};
  }
  return trips;
}

TEST(Seed, TweetsAreTenMegabytesOfJsonAndTheSameEveryTime) {
  const auto tweets = make_tweets();
  ASSERT_EQ(tweets.size(), 14485U);
  const std::size_t bytes = std::accumulate(tweets.begin(), tweets.end(), std::size_t{0},
                                            [](std::size_t sum, const auto& t) { return sum + t.size(); });
  EXPECT_NEAR(static_cast<double>(bytes), 10e6, 0.2e6);
  for (std::size_t i = 0; i < tweets.size(); i += 997)
    EXPECT_NO_THROW((void)nlohmann::json::parse(tweets[i]).at("text")) << tweets[i];
  EXPECT_EQ(tweets, make_tweets());
  EXPECT_NE(tweets, make_tweets(kTweets, 2));
  EXPECT_EQ(std::hash<std::string>{}(tweets[7]), std::hash<std::string>{}(make_tweets(8)[7]));
}

TEST(Seed, FiguresAreThoseOfTheTrips) {
  const auto trips = growing();
  const Figures got = figures_of(trips);
  EXPECT_EQ(got.messages, 1000);
  EXPECT_NEAR(got.first_ms, 10, 1e-6);
  EXPECT_NEAR(got.last_ms, 10 + 999 * 0.077 - 99, 1e-6);
  EXPECT_NEAR(*got.arrival_per_s, 999 * 1000 / 99.0, 1);
  EXPECT_NEAR(*got.service_per_s, 1e6 / 77, 0.1);
  EXPECT_NEAR(got.blocked_ms, 2000, 1e-3);
  EXPECT_NEAR(got.seconds, 0.076923, 1e-6);
  double sum = 0;
  std::vector<std::string> names;
  for (const auto& [name, stage] : got.stages) {
    names.push_back(name);
    if (name != "fetched") sum += to_ms(stage.mean);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"queued", "sent", "acked", "fetched", "stored"}));
  EXPECT_NEAR(sum, 5.077, 0.01);
  EXPECT_EQ(figures_of({}).messages, 0);
}

TEST(Seed, JsonHasTheKeysThatAreAskedFor) {
  SeedReport report;
  report.question.figures = report.no_work.figures = report.guarded.figures = figures_of(growing());
  report.question.seen = observe(growing());
  const auto json = nlohmann::json::parse(to_json(report));
  const std::set<std::string> block = {
      "messages",          "first_ms",  "last_ms",           "p50_ms",        "p99_ms",        "max_ms",
      "slope_ms_per_1000", "max_queue", "acked_during_loop", "arrival_per_s", "service_per_s", "stages"};
  const auto keys = [](const nlohmann::json& object) {
    std::set<std::string> names;
    for (const auto& [name, value] : object.items()) names.insert(name);
    return names;
  };
  EXPECT_EQ(keys(json), (std::set<std::string>{"question", "no_work", "guarded"}));
  EXPECT_EQ(keys(json["question"]), block);
  EXPECT_EQ(keys(json["no_work"]), block);
  auto more = block;
  more.insert({"capacity_used", "measured_s", "intended_to_received_p99_ms", "blocked_ms"});
  EXPECT_EQ(keys(json["guarded"]), more);
  EXPECT_NE(to_text(report).find("Bottleneck:"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(to_json(SeedReport{}))["guarded"]["p99_ms"].is_null());
}

}  // namespace
}  // namespace weir::bench
