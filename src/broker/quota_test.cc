#include "broker/quota.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "broker/producer_ids.h"
#include "broker/quota_admin.h"
#include "broker/quota_rate.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

const QuotaEntity kDefaultClient = {{"client-id", std::nullopt}};
QuotaEntity client(const char* name) { return {{"client-id", name}}; }

struct QuotaTest : ::testing::Test {
  void set(QuotaEntity entity, std::optional<double> value, const char* key = "producer_byte_rate") {
    quotas.replay(QuotaRecord{std::move(entity), key, value});
  }
  Request from(const char* client_id, std::uint64_t connection = 1) {
    Request request;
    request.connection = ConnectionId(connection);
    request.client_id = client_id;
    return request;
  }
  Duration produce(const char* client_id, Bytes bytes, std::uint64_t connection = 1) {
    return quotas.produced(clock.now(), from(client_id, connection), bytes);
  }
  BrokerConfig config;
  Quotas quotas{config};
  ManualClock clock;
};

TEST(TrailingRate, Spans_all_but_one_of_the_windows_until_more_time_has_passed) {
  TrailingRate rate(11, seconds(1));
  ManualClock clock;
  const auto now = [&] { return clock.now().mono; };
  rate.record(now(), 1000);
  EXPECT_DOUBLE_EQ(rate.per_second(now()), 100);
  EXPECT_EQ(rate.delay(now(), 100), Duration{0});
  EXPECT_EQ(rate.delay(now(), 50), seconds(10));
  clock.advance(milliseconds(500));
  EXPECT_DOUBLE_EQ(rate.per_second(now()), 1000 / 10.5);
  clock.advance(milliseconds(10400));  // 10.9 s: the span grows, the sample is still in it
  EXPECT_DOUBLE_EQ(rate.per_second(now()), 1000 / 10.9);
  EXPECT_FALSE(rate.idle(now()));
  clock.advance(milliseconds(100));
  EXPECT_EQ(rate.per_second(now()), 0);
  EXPECT_TRUE(rate.idle(now()));
}

TEST_F(QuotaTest, Ten_times_the_quota_passes_at_once_and_then_the_excess_is_waited_for) {
  set(kDefaultClient, 1000);
  EXPECT_EQ(produce("a", 10000), Duration{0});
  EXPECT_EQ(produce("a", 500), milliseconds(500));
  EXPECT_EQ(produce("a", 100000), seconds(100) + milliseconds(500)) << "the delay has no cap";
}

TEST_F(QuotaTest, A_client_that_waits_as_told_is_held_to_its_quota) {
  // 100 KB/s, requests of 20 KB as fast as allowed, for 60 s.
  set(kDefaultClient, 100000);
  const MonoTime start = clock.now().mono;
  double bytes = 0;
  double burst = 0;
  Duration longest{};
  while (clock.now().mono - start < seconds(60)) {
    const Duration wait = produce("a", 20000);
    bytes += 20000;
    if (clock.now().mono - start < seconds(1)) burst = bytes;
    longest = std::max(longest, wait);
    clock.advance(wait + milliseconds(1));
  }
  EXPECT_GE(burst, 1e6);
  EXPECT_GT(longest, Duration{0});
  const double steady = (bytes - burst) / 60;
  EXPECT_NEAR(steady, 100000, 10000);
}

TEST_F(QuotaTest, Connections_of_one_client_id_share_one_sum_and_others_are_unaffected) {
  set(kDefaultClient, 300000);
  const MonoTime start = clock.now().mono;
  MonoTime free_at[3] = {start, start, start};
  double late = 0;
  while (clock.now().mono - start < seconds(132)) {
    for (std::uint64_t c = 0; c < 3; ++c) {
      if (clock.now().mono < free_at[c]) continue;
      free_at[c] = clock.now().mono + produce("three", 30000, c);
      if (clock.now().mono - start >= seconds(22)) late += 30000;
    }
    clock.advance(milliseconds(10));
  }
  EXPECT_NEAR(late / 110, 300000, 30000) << "not three times that";
  EXPECT_EQ(produce("another", 1000), Duration{0});
}

TEST_F(QuotaTest, The_most_specific_quota_is_in_force) {
  // Field: operators must be able to tell which of their quotas counts.
  const auto limit = [&] { return quotas.limit("producer_byte_rate", "ANONYMOUS", "c"); };
  const QuotaEntity both = {{"client-id", "c"}, {"user", "ANONYMOUS"}};
  EXPECT_EQ(limit(), std::nullopt);
  config.quota_producer_default = 1;
  EXPECT_EQ(limit(), 1);
  const std::pair<QuotaEntity, double> rising[] = {
      {kDefaultClient, 2},
      {client("c"), 3},
      {{{"user", std::nullopt}}, 4},
      {{{"client-id", std::nullopt}, {"user", std::nullopt}}, 5},
      {{{"client-id", "c"}, {"user", std::nullopt}}, 6},
      {{{"user", "ANONYMOUS"}}, 7},
      {{{"client-id", std::nullopt}, {"user", "ANONYMOUS"}}, 8},
      {both, 9},
  };
  for (const auto& [entity, value] : rising) {
    set(entity, value);
    EXPECT_EQ(limit(), value);
  }
  EXPECT_EQ(quotas.limit("producer_byte_rate", "ANONYMOUS", "other"), 8);
  EXPECT_EQ(quotas.limit("producer_byte_rate", "other", "c"), 6);
  for (auto it = std::rbegin(rising); it != std::rend(rising); ++it) {
    EXPECT_EQ(limit(), it->second);
    set(it->first, std::nullopt);
  }
  EXPECT_EQ(limit(), 1);
  EXPECT_TRUE(quotas.all().empty());
}

TEST_F(QuotaTest, A_change_counts_for_the_next_request_and_for_the_seconds_before_it) {
  set(kDefaultClient, 1e9);
  EXPECT_EQ(produce("a", 100000), Duration{0});
  set(client("a"), 1000);
  EXPECT_EQ(produce("a", 1000), milliseconds(91000));
  set(client("a"), std::nullopt);
  EXPECT_EQ(produce("a", 1000), Duration{0});
}

TEST_F(QuotaTest, All_clients_of_a_user_share_the_users_quota) {
  set({{"user", "ANONYMOUS"}}, 1000);
  EXPECT_EQ(produce("a", 10000), Duration{0});
  EXPECT_GT(produce("b", 1000), Duration{0});
}

TEST_F(QuotaTest, A_fetch_over_quota_is_not_counted_so_that_it_can_be_repeated) {
  set(kDefaultClient, 1000, "consumer_byte_rate");
  EXPECT_EQ(quotas.max_fetch_bytes(from("a")), 10000u);
  EXPECT_EQ(quotas.fetched(clock.now(), from("a"), 10000), Duration{0});
  const Duration wait = quotas.fetched(clock.now(), from("a"), 10000);
  EXPECT_EQ(wait, seconds(10));
  quotas.unfetched(clock.now(), from("a"), 10000);
  clock.advance(wait + seconds(1));
  EXPECT_EQ(quotas.fetched(clock.now(), from("a"), 10000), Duration{0});
  EXPECT_EQ(produce("a", 1000000), Duration{0}) << "another quota";
}

TEST_F(QuotaTest, Idle_clients_are_forgotten_and_without_quotas_nobody_is_remembered) {
  produce("nobody", 1);
  EXPECT_EQ(quotas.tracked(), 0u);
  EXPECT_EQ(quotas.max_fetch_bytes(from("a")), std::numeric_limits<Bytes>::max());
  set(kDefaultClient, 1000);
  for (int i = 0; i < 100; ++i) produce(std::to_string(i).c_str(), 1);
  EXPECT_EQ(quotas.tracked(), 100u);
  clock.advance(std::chrono::minutes(2));
  produce("a", 1);
  EXPECT_EQ(quotas.tracked(), 1u);
}

// ---- Describe and alter --------------------------------------------------------------------------------------------

struct QuotaAdmin : QuotaTest {
  using Alter = protocol::AlterClientQuotasRequest;
  protocol::AlterClientQuotasResponse::EntryData alter(std::vector<Alter::EntityData> entity, Alter::OpData op,
                                                       bool validate_only = false) {
    auto decision = alter_quotas(quotas, {{{std::move(entity), {std::move(op)}}}, validate_only});
    if (!decision.records.empty()) {
      const auto read_back = decode_metadata_records(encode(decision.records));
      for (const auto& record : *read_back) quotas.replay(std::get<QuotaRecord>(record));
    }
    return decision.response.entries.at(0);
  }
  std::string describe(std::vector<protocol::DescribeClientQuotasRequest::ComponentData> components, bool strict) {
    const auto response = describe_quotas(quotas, {std::move(components), strict});
    if (!response.entries) return "error " + std::to_string(static_cast<int>(response.error_code));
    std::string text;
    for (const auto& entry : *response.entries) {
      for (const auto& [type, name] : entry.entity) text += type + "=" + name.value_or("*") + " ";
      for (const auto& [key, value] : entry.values) text += key + ":" + std::to_string(int(value)) + ";";
    }
    return text;
  }
};

TEST_F(QuotaAdmin, Only_sensible_quotas_are_taken) {
  const auto refused = [&](std::vector<Alter::EntityData> entity, Alter::OpData op) {
    const auto entry = alter(std::move(entity), std::move(op));
    EXPECT_EQ(entry.error_code, ErrorCode::kInvalidRequest);
    return entry.error_message.value_or("");
  };
  EXPECT_EQ(refused({{"client-id", "c"}}, {"producer_byte_rate", 1.5}),
            "producer_byte_rate cannot be a fractional value.");
  EXPECT_EQ(refused({{"client-id", "c"}}, {"producer_byte_rate", 0}),
            "Quota producer_byte_rate must be greater than 0");
  EXPECT_EQ(refused({{"client-id", "c"}}, {"no_rate", 1}), "Invalid configuration key no_rate");
  EXPECT_EQ(refused({{"client-id", "c"}}, {"connection_creation_rate", 1}),
            "Invalid configuration key connection_creation_rate");
  EXPECT_EQ(refused({}, {"producer_byte_rate", 1}), "Invalid empty client quota entity.");
  EXPECT_EQ(refused({{"tenant", "c"}}, {"producer_byte_rate", 1}), "Unhandled client quota entity type: tenant");
  EXPECT_EQ(refused({{"client-id", ""}}, {"producer_byte_rate", 1}), "Empty client-id unsupported");
  EXPECT_NE(refused({{"ip", "1.2.3.4"}, {"user", "u"}}, {"connection_creation_rate", 1}), "");
  EXPECT_NE(refused({{"user", "u"}, {"user", "v"}}, {"producer_byte_rate", 1}), "");
  EXPECT_TRUE(quotas.all().empty());

  EXPECT_EQ(alter({{"client-id", "c"}}, {"producer_byte_rate", 1000}, true).error_code, ErrorCode::kNone);
  EXPECT_TRUE(quotas.all().empty()) << "validated only";
  EXPECT_EQ(alter({{"user", "u"}}, {"request_percentage", 12.5}).error_code, ErrorCode::kNone);
  EXPECT_EQ(alter({{"user", "u"}}, {"controller_mutation_rate", 0.5}).error_code, ErrorCode::kNone);
  EXPECT_EQ(alter({{"ip", std::nullopt}}, {"connection_creation_rate", 10}).error_code, ErrorCode::kNone);
  EXPECT_EQ(alter({{"user", "u"}, {"client-id", "c"}}, {"consumer_byte_rate", 5}).error_code, ErrorCode::kNone);
  EXPECT_EQ(alter({{"user", "nobody"}}, {"request_percentage", 0, true}).error_code, ErrorCode::kNone);
  EXPECT_EQ(quotas.all().size(), 3u);
}

TEST_F(QuotaAdmin, Describing_filters_by_exact_name_default_and_any) {
  alter({{"client-id", std::nullopt}}, {"producer_byte_rate", 1});
  alter({{"client-id", "c"}}, {"producer_byte_rate", 2});
  alter({{"user", "u"}, {"client-id", "c"}}, {"consumer_byte_rate", 3});
  EXPECT_EQ(describe({{"client-id", 0, "c"}}, true), "client-id=c producer_byte_rate:2;");
  EXPECT_EQ(describe({{"client-id", 0, "c"}}, false),
            "client-id=c producer_byte_rate:2;client-id=c user=u consumer_byte_rate:3;");
  EXPECT_EQ(describe({{"client-id", 1, {}}}, true), "client-id=* producer_byte_rate:1;");
  EXPECT_EQ(describe({{"client-id", 2, {}}}, true),
            "client-id=* producer_byte_rate:1;client-id=c producer_byte_rate:2;");
  EXPECT_EQ(describe({{"user", 2, {}}, {"client-id", 2, {}}}, true), "client-id=c user=u consumer_byte_rate:3;");
  EXPECT_EQ(describe({{"ip", 2, {}}}, true), "");
  EXPECT_EQ(describe({}, true), "");
  EXPECT_EQ(describe({{"tenant", 2, {}}}, true), "error 35");
  EXPECT_EQ(describe({{"user", 2, {}}, {"user", 2, {}}}, true), "error 42");
  EXPECT_EQ(describe({{"user", 0, {}}}, true), "error 42");
  EXPECT_EQ(describe({{"user", 3, {}}}, true), "error 42");
}

// ---- Producer ids --------------------------------------------------------------------------------------------------

TEST(ProducerIds, Are_never_used_twice_whatever_is_lost) {
  std::vector<ProducerIdsRecord> disk;
  std::int64_t last = -1;
  for (int life = 0; life < 3; ++life) {
    ProducerIds ids;
    for (const auto& record : disk) ids.replay(record);
    for (int i = 0; i < 1500; ++i) {
      const auto grant = ids.next();
      ASSERT_GT(grant.id.value, last);
      last = grant.id.value;
      if (!grant.reserve) {
        ASSERT_LT(grant.id.value, disk.back().next);
        continue;
      }
      ASSERT_GT(grant.reserve->next, grant.id.value);
      if (life == 1 && i < 5) continue;  // the disk is full: the id is not handed out, nothing is replayed
      disk.push_back(*grant.reserve);
      ids.replay(*grant.reserve);
    }
  }
  EXPECT_LE(disk.size(), 6u);
}

}  // namespace
}  // namespace weir::broker
