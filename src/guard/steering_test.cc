#include "guard/steering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/directive_book.h"
#include "guard/order.h"
#include "http/directives.h"

namespace weir::guard {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const MonoTime kStart{std::chrono::hours(1)};

Directive pause(Scope scope, MonoTime until) {
  return {.scope = std::move(scope), .pause = true, .reason = "stop", .expires = until};
}
Directive rate(Scope scope, double records, MonoTime until) {
  return {.scope = std::move(scope), .records_per_second = records, .reason = "slow", .expires = until};
}
Directive bytes(Scope scope, double per_second, MonoTime until) {
  return {.scope = std::move(scope), .bytes_per_second = per_second, .reason = "thin", .expires = until};
}

TEST(DirectiveBook, EverythingExpires) {
  DirectiveBook book;
  book.put(kOperator, pause({}, kStart + seconds(10)));
  EXPECT_EQ(book.active(kStart + seconds(9)).size(), 1u);
  EXPECT_TRUE(book.active(kStart + seconds(10)).empty());
}

TEST(DirectiveBook, OneDirectivePerScopeAndTheStricterWins) {
  DirectiveBook book;
  book.put("lag law of g", rate({.topic = "t"}, 500, kStart + seconds(10)));
  book.put("lag law of h", rate({.topic = "t"}, 200, kStart + seconds(8)));
  book.put(kOperator, bytes({.topic = "t"}, 1e6, kStart + seconds(20)));
  auto active = book.active(kStart);
  ASSERT_EQ(active.size(), 1u);
  EXPECT_EQ(active[0].records_per_second, 200);
  EXPECT_EQ(active[0].bytes_per_second, 1e6);
  EXPECT_EQ(active[0].expires, kStart + seconds(8));
  book.put(kOperator, pause({.topic = "t"}, kStart + seconds(5)));
  EXPECT_TRUE(book.active(kStart)[0].pause);
  EXPECT_EQ(book.active(kStart)[0].reason, "stop");
  EXPECT_EQ(book.active(kStart, {.laws = false})[0].records_per_second, std::nullopt);
}

TEST(DirectiveBook, AResumeTakesBackWhatLiesWithinItsScope) {
  DirectiveBook book;
  const MonoTime later = kStart + seconds(60);
  book.put(kOperator, pause({.topic = "t", .partition = PartitionId(3)}, later));
  book.put(kOperator, pause({.topic = "u"}, later));
  book.put("lag law of g", rate({.topic = "t"}, 10, later));
  EXPECT_EQ(book.take_back(kOperator, {.topic = "t"}, kStart).size(), 1u);
  EXPECT_EQ(book.active(kStart).size(), 2u);  // The law's and the other topic's stand.
  EXPECT_EQ(book.take_back(kOperator, {}, kStart).size(), 1u);
}

TEST(DirectiveBook, AProducerGetsWhatConcernsIt) {
  DirectiveBook book;
  const MonoTime later = kStart + seconds(60);
  book.put(kOperator, pause({.client_id = "a"}, later));
  book.put(kOperator, rate({.topic = "t"}, 10, later));
  EXPECT_EQ(book.active(kStart, {.client_id = "a", .topics = {"t"}}).size(), 2u);
  EXPECT_EQ(book.active(kStart, {.client_id = "b", .topics = {"t"}}).size(), 1u);
  EXPECT_EQ(book.active(kStart, {.client_id = "b", .topics = {"x"}}).size(), 0u);
}

http::Request body(std::string text) { return {.method = "POST", .body = std::move(text)}; }
constexpr OrderLimits kLimits{seconds(10), std::chrono::hours(24)};

TEST(Order, ScopeReachesDownToOnePartition) {
  const auto order = parse_order(
      OrderKind::kLimit,
      body(R"({"scope":{"topic":"logs","partition":3},"value":1000,"unit":"records/s","ttl":"60s"})"), kLimits);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(to_string(order->scope), "topic logs, partition 3");
  EXPECT_EQ(order->records_per_second, 1000);
  EXPECT_EQ(order->ttl, seconds(60));
  const auto query = parse_order(OrderKind::kPause, {.query = {{"topic", "logs"}, {"ttl", "5"}}}, kLimits);
  EXPECT_EQ(query->scope.topic, "logs");
  EXPECT_EQ(query->ttl, seconds(5));
  EXPECT_EQ(parse_order(OrderKind::kPause, {}, kLimits)->ttl, seconds(10));
}

TEST(Order, WhatIsNotUnderstoodIsRefused) {
  for (const char* bad : {"[]", "{", R"({"topics":"t"})", R"({"scope":{"parttion":1}})", R"({"scope":"all"})",
                          R"({"partition":1,"value":1})", R"({"topic":"t","partition":-1,"value":1})", R"({"value":0})",
                          R"({"value":"1x"})", R"({"value":1,"unit":"furlongs"})", R"({"value":1,"ttl":"25h"})",
                          R"({"value":1,"ttl":"0s"})", R"({"value":1,"ttl":true})", "{}"}) {
    EXPECT_FALSE(parse_order(OrderKind::kLimit, body(bad), kLimits)) << bad;
  }
  EXPECT_FALSE(parse_order(OrderKind::kResume, body(R"({"ttl":"1s"})"), kLimits));
}

TEST(Directives, TravelWithTimeToLive) {
  const MonoTime elsewhere = kStart + std::chrono::hours(9);
  std::vector<Directive> sent{
      rate({.client_id = "c", .topic = "t", .partition = PartitionId(2)}, 12.5, kStart + seconds(7)),
      pause({}, kStart + seconds(3))};
  sent[0].signal = {SignalKind::kLagTime, 6.5};
  const auto got = http::directives_from_json(http::directives_to_json(sent, kStart), elsewhere);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ((*got)[0].scope, sent[0].scope);
  EXPECT_EQ((*got)[0].records_per_second, 12.5);
  EXPECT_EQ((*got)[0].signal.kind, SignalKind::kLagTime);
  EXPECT_EQ((*got)[0].expires, elsewhere + seconds(7));
  EXPECT_TRUE((*got)[1].pause);
  for (const char* bad : {"", "{}", R"({"directives":[{}]})", R"({"directives":[{"scope":{},"ttl_ms":99999999}]})",
                          R"({"directives":[{"scope":{},"ttl_ms":1,"records_per_second":0}]})",
                          R"({"directives":[{"scope":{"partition":"x"},"ttl_ms":1}]})"}) {
    EXPECT_FALSE(http::directives_from_json(bad, kStart)) << bad;
  }
}

struct Steered : testing::Test {
  /// A poll in which the group has committed `committed` of `end` records and is `time` behind.
  void poll(std::int64_t committed, std::int64_t end, std::optional<Duration> time, bool stale = false) {
    clock.advance(seconds(1));
    LagSnapshot snapshot;
    GroupLag& group = snapshot.groups["g"];
    group.stale = stale;
    group.partitions.push_back({.partition = {"t", PartitionId(0)},
                                .state = LagState::kOk,
                                .committed = Offset(committed),
                                .end = Offset(end),
                                .records = end - committed,
                                .time = time});
    snapshot.groups["bystander"] = group;
    steering.update(clock.now(), snapshot);
  }
  std::optional<double> limit() {
    const auto active = book.active(clock.now().mono);
    return active.empty() ? std::nullopt : active[0].records_per_second;
  }

  DirectiveBook book;
  flow::Journal journal;
  SteeringSettings settings{.groups = {"g"}};
  Steering steering{settings, book, journal};
  ManualClock clock;
};

TEST_F(Steered, LagAboveTheTargetLimitsTheTopicAndSaysWhy) {
  for (int i = 1; i <= 5; ++i) poll(i * 1000, i * 1000 + 5000, seconds(5));
  ASSERT_TRUE(limit());
  EXPECT_NEAR(*limit(), 1000, 50);  // At the target the rate is the drain rate.
  const Directive directive = book.active(clock.now().mono)[0];
  EXPECT_EQ(directive.scope, Scope{.topic = "t"});
  EXPECT_THAT(directive.reason, HasSubstr("lag of g on t is 5.0 s, target 5.0 s"));
  EXPECT_EQ(journal.decisions().back().law, "lag law");
  poll(6000, 16000, seconds(10));
  EXPECT_NEAR(*limit(), 500, 50);
}

TEST_F(Steered, AFirstCommitFarIntoTheLogIsNotADrainRate) {
  for (int i = 1; i <= 5; ++i) poll(i * 1000 + 50'000'000, i * 1000 + 50'005'000, seconds(5));
  EXPECT_NEAR(*limit(), 1000, 50);
  poll(10, 50'015'000, seconds(5));  // Reset by somebody.
  poll(1010, 50'016'000, seconds(5));
  EXPECT_LT(*limit(), 1050);
}

TEST_F(Steered, ALittleLagLimitsNothing) {
  for (int i = 1; i <= 5; ++i) poll(i * 1000, i * 1000 + 500, std::chrono::milliseconds(500));
  EXPECT_FALSE(limit());
  EXPECT_EQ(journal.total(), 0u);
}

TEST_F(Steered, AConsumerThatPausesForAMomentLimitsNobody) {
  for (int i = 1; i <= 5; ++i) poll(1000, 1000 + i * 300, std::chrono::milliseconds(i * 400));
  EXPECT_FALSE(limit());
  poll(1000, 3000, seconds(3));  // Not a moment any more: it drains nothing, the floor holds.
  EXPECT_EQ(limit(), settings.law.floor);
}

TEST_F(Steered, ALagThatCannotBeMeasuredChangesNothingThenReleases) {
  for (int i = 1; i <= 5; ++i) poll(i * 1000, i * 1000 + 5000, seconds(5));
  const auto before = limit();
  for (int i = 0; i < 10; ++i) {
    poll(5000, 10000, seconds(5), true);
    EXPECT_EQ(limit(), before);
  }
  for (int i = 0; i < 20; ++i) poll(5000, 10000, seconds(5), true);
  EXPECT_FALSE(limit());
}

TEST_F(Steered, AGuardThatDiesLeavesNothingBehind) {
  for (int i = 1; i <= 5; ++i) poll(i * 1000, i * 1000 + 5000, seconds(5));
  ASSERT_TRUE(limit());
  clock.advance(settings.directive_ttl);
  EXPECT_FALSE(limit());
}

}  // namespace
}  // namespace weir::guard
