#include "guard/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "guard/fake_source.h"
#include "http/client.h"
#include "http/directives.h"

namespace weir::guard {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

struct Running : testing::Test {
  Running() {
    auto owned = std::make_unique<FakeSource>();
    source = owned.get();
    source->log("t", 0, 0, 100);
    source->commit("g", "t", 0, 90);
    GuardSettings settings;
    settings.http.port = 0;
    settings.period = milliseconds(5);
    settings.lag_target = std::chrono::hours(1);
    settings.max_lag = 1000;
    guard.emplace(settings, metrics, std::move(owned));
    guard->set_pipeline_status(
        [] { return PipelineStatus{.read = 7, .limit = {.limited_by = LimitedBy::kConsumer, .why = "it is slow"}}; });
    address = *guard->start();
    wait_for_polls(1);
  }
  /// Until that many measurements more have been published.
  void wait_for_polls(std::uint64_t more) {
    const std::uint64_t until = guard->lag()->number + more;
    while (guard->lag()->number < until) std::this_thread::yield();
  }
  int check(const std::string& group) { return http::get(address, "/api/check/" + group)->status; }
  json get(const std::string& path) { return json::parse(http::get(address, path)->body); }

  Registry metrics;
  FakeSource* source = nullptr;
  std::optional<Guard> guard;
  http::Address address;
};

TEST(Measure, WaitsForAMeasurementThatBeganAfterTheCall) {
  auto owned = std::make_unique<FakeSource>();
  FakeSource& source = *owned;
  source.log("t", 0, 0, 100);
  source.commit("g", "t", 0, 90);
  Registry metrics;
  GuardSettings settings;
  settings.http.port = 0;
  settings.period = std::chrono::hours(1);
  Guard guard(settings, metrics, std::move(owned));
  ASSERT_TRUE(guard.start());
  for (std::int64_t committed = 91; committed < 95; ++committed) {
    {
      std::lock_guard lock(source.mutex);
      source.commit("g", "t", 0, committed);
    }
    EXPECT_EQ(guard.measure(std::chrono::minutes(1))->groups.at("g").records, 100 - committed);
  }
  guard.stop();
  EXPECT_EQ(guard.measure(std::chrono::minutes(1))->groups.at("g").records, 6) << "none comes any more";
}

TEST_F(Running, CheckSaysGoWaitUnknownOrCannotMeasure) {
  EXPECT_EQ(check("g"), 200);
  EXPECT_EQ(check("nobody"), 404);
  {
    std::lock_guard lock(source->mutex);
    source->log("t", 0, 0, 5000);
  }
  wait_for_polls(2);
  EXPECT_EQ(check("g"), 429);
  EXPECT_THAT(http::get(address, "/api/check/g")->body, HasSubstr("4910 records, at most 1000"));
  {
    std::lock_guard lock(source->mutex);
    source->hung = {"c1"};
  }
  wait_for_polls(2);
  EXPECT_EQ(check("g"), 503);
  {
    std::lock_guard lock(source->mutex);
    source->down = true;
  }
  wait_for_polls(2);
  EXPECT_EQ(check("nobody"), 503);  // It may exist: nobody can tell now.
}

TEST_F(Running, CheckGoesByTheWorstThatIsKnownAndNeverTakesUnknownForZero) {
  {
    std::lock_guard lock(source->mutex);
    source->commit("g", "t", 0, 100);
    source->log("t", 1, 0, 50);  // it holds records, and nobody knows which of them the group has read
  }
  wait_for_polls(2);
  EXPECT_EQ(check("g"), 503);
  EXPECT_THAT(http::get(address, "/api/check/g")->body, HasSubstr("1 partition holds records and no commit"));
  {
    std::lock_guard lock(source->mutex);
    source->log("t", 0, 0, 2000);
  }
  wait_for_polls(2);
  EXPECT_EQ(check("g"), 429);  // what is known is too much already
  {
    std::lock_guard lock(source->mutex);
    source->commit("g", "t", 0, 2000);
    source->commit("g", "t", 1, 50);
  }
  wait_for_polls(2);
  EXPECT_EQ(check("g"), 200);
}

TEST_F(Running, OrdersReachProducersAndExpire) {
  EXPECT_EQ(
      http::post(address, "/api/limit", R"({"scope":{"topic":"t","partition":0},"value":500,"ttl":"1h"})")->status,
      200);
  const auto fetched = http::fetch_directives(address, "app", {"t"}, false, system_clock());
  ASSERT_TRUE(fetched) << fetched.error().message;
  ASSERT_EQ(fetched->size(), 1u);
  EXPECT_EQ(fetched->at(0).records_per_second, 500);
  // However long the order stands, a producer must hear of it again: the guard may die.
  EXPECT_LE(fetched->at(0).expires, system_clock().now().mono + defaults::kDirectiveTtl);
  EXPECT_TRUE(http::fetch_directives(address, "app", {"other"}, true, system_clock())->empty());

  EXPECT_EQ(http::post(address, "/api/pause", "")->status, 200);
  EXPECT_EQ(check("g"), 429);
  EXPECT_EQ(guard->directives().size(), 2u);
  EXPECT_EQ(json::parse(http::post(address, "/api/resume", "")->body)["taken_back"], 2);
  EXPECT_EQ(check("g"), 200);
  EXPECT_EQ(http::post(address, "/api/pause?ttl=10ms", "")->status, 200);
  while (!guard->directives().empty()) std::this_thread::yield();

  const auto bad = http::post(address, "/api/limit", R"({"value":-1})");
  EXPECT_EQ(bad->status, 400);
  EXPECT_THAT(bad->body, HasSubstr("value must be a number above 0 and at most 1000000000000000"));
  EXPECT_EQ(http::get(address, "/api/directives?topic=t")->status, 400);
  for (const char* body : {R"({"scope":{"topic":""}})", R"({"client_id":""})", R"({"scope":5})"})
    EXPECT_EQ(http::post(address, "/api/pause", body)->status, 400) << body;
  EXPECT_EQ(http::post(address, "/api/resume?topic=", "")->status, 400);
  EXPECT_EQ(http::post(address, "/api/pause?reason=" + std::string(501, 'x'), "")->status, 400);
  EXPECT_TRUE(guard->directives().empty());
}

TEST_F(Running, StatusLagMetricsAndPageAreServed) {
  http::post(address, "/api/pause?topic=t&reason=maintenance", "");
  const json status = get("/api/status");
  EXPECT_EQ(status["pipeline"]["read"], 7);
  EXPECT_EQ(status["pipeline"]["limit"]["limited_by"], to_string(LimitedBy::kConsumer));
  EXPECT_EQ(status["groups"][0]["lag"], 10);
  EXPECT_EQ(status["journal"][0]["why"], "maintenance");
  EXPECT_EQ(status["directives"][0]["pause"], true);
  EXPECT_EQ(get("/api/lag?group=g")["groups"][0]["partitions"][0]["committed"], 90);
  const std::string text = http::get(address, "/metrics")->body;
  EXPECT_THAT(
      text,
      HasSubstr("kafka_consumer_lag{group=\"g\",topic=\"t\",partition=\"0\",state=\"Stable\",assigned=\"true\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("weir_guard_directives 1\n"));
  EXPECT_THAT(text, HasSubstr("weir_guard_measure_age_seconds "));
  EXPECT_EQ(http::get(address, "/healthz")->status, 200);
  const auto page = http::get(address, "/");
  EXPECT_THAT(page->content_type, HasSubstr("text/html"));
  EXPECT_THAT(page->body, HasSubstr("/api/events"));
  EXPECT_EQ(page->body.find("https://"), std::string::npos);  // Nothing from elsewhere.
}

TEST(Guard, StartsWithoutKafkaAndStopsAtOnce) {
  Registry metrics;
  GuardSettings settings;
  settings.http.port = 0;
  settings.admin.bootstrap = "127.0.0.1:1";
  Guard guard(settings, metrics);
  const auto address = guard.start();
  ASSERT_TRUE(address);
  EXPECT_EQ(http::get(*address, "/api/check/g")->status, 503);
  const auto before = std::chrono::steady_clock::now();
  guard.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(2));
}

}  // namespace
}  // namespace weir::guard
