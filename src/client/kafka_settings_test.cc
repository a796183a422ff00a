#include "client/kafka_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "client/rdkafka_common.h"
#include "client/transport.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::map<std::string, std::string> by_name(const std::vector<SettingInForce>& list) {
  std::map<std::string, std::string> values;
  for (const auto& one : list) values[one.name] = one.value;
  return values;
}

TEST(KafkaSettingsTest, TheArticlesProducerValuesAreInForce) {
  const auto settings = producer_settings({{"buffer.memory", "67108864"},
                                           {"max.block.ms", "60000"},
                                           {"batch.size", "65536"},
                                           {"linger.ms", "10"},
                                           {"max.in.flight.requests.per.connection", "5"},
                                           {"compression.type", "snappy"},
                                           {"acks", "all"},
                                           {"retries", "3"},
                                           {"retry.backoff.ms", "100"}});
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  auto producer = Producer::open(*settings);
  ASSERT_TRUE(producer.has_value()) << producer.error().message;
  auto values = by_name((*producer)->in_force());
  EXPECT_EQ(values["buffer.memory"], "67108864");
  EXPECT_EQ(values["max.block.ms"], "60000");
  EXPECT_EQ(values["batch.size"], "65536");
  EXPECT_EQ(values["linger.ms"], "10");
  EXPECT_EQ(values["max.in.flight.requests.per.connection"], "5");
  EXPECT_EQ(values["compression.type"], "snappy");
  EXPECT_EQ(values["acks"], "all");
  EXPECT_EQ(values["retries"], "3");
  EXPECT_EQ(values["retry.backoff.ms"], "100");
  EXPECT_EQ(values["enable.idempotence"], "true");
  EXPECT_EQ(values["delivery.timeout.ms"], "0");
}

TEST(KafkaSettingsTest, TheArticlesConsumerValuesAreInForce) {
  auto settings = consumer_settings({{"max.poll.records", "100"},
                                     {"fetch.min.bytes", "1024"},
                                     {"fetch.max.wait.ms", "500"},
                                     {"session.timeout.ms", "10s"},
                                     {"enable.auto.commit", "false"},
                                     {"default.topic.config.auto.offset.reset", "smallest"}});
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  settings->topics = {"logs"};
  auto consumer = Consumer::open(*settings);
  ASSERT_TRUE(consumer.has_value()) << consumer.error().message;
  auto values = by_name((*consumer)->in_force());
  EXPECT_EQ(values["max.poll.records"], "100");
  EXPECT_EQ(values["fetch.min.bytes"], "1024");
  EXPECT_EQ(values["fetch.max.wait.ms"], "500");
  EXPECT_EQ(values["session.timeout.ms"], "10000");
  EXPECT_EQ(values["auto.offset.reset"], "earliest");
  EXPECT_EQ(values["enable.auto.commit"], "false");
  EXPECT_GE(std::stoul(values["fetch.max.bytes"]), 1'000'000u);
  (*consumer)->close(0s);
}

TEST(KafkaSettingsTest, BothSpellingsMeanTheSame) {
  const auto java = producer_settings(
      {{"linger.ms", "7"}, {"compression.type", "lz4"}, {"retries", "9"}, {"max.request.size", "2MiB"}});
  const auto library = producer_settings({{"queue.buffering.max.ms", "7ms"},
                                          {"compression.codec", "LZ4"},
                                          {"message.send.max.retries", "9"},
                                          {"message.max.bytes", "2097152"}});
  ASSERT_TRUE(java && library);
  EXPECT_EQ(java->linger, library->linger);
  EXPECT_EQ(java->compression, library->compression);
  EXPECT_EQ(java->retries, library->retries);
  EXPECT_EQ(java->max_request_size, library->max_request_size);
  EXPECT_EQ(consumer_settings({{"fetch.wait.max.ms", "5"}})->fetch_max_wait,
            consumer_settings({{"fetch.max.wait.ms", "5ms"}})->fetch_max_wait);
}

TEST(KafkaSettingsTest, ThePrefetchOfThirtyTwoPartitionsIsAQuarterOfTheMemory) {
  for (const Bytes memory : {kMiB, 5 * kMiB, 16 * kMiB, 32 * kMiB, 256 * kMiB}) {
    ConsumerSettings settings;
    settings.buffer_memory = memory;
    std::map<std::string, std::string> values;
    for (const auto& [name, value] : library_settings(settings)) values[name] = value;
    const Bytes prefetch = std::stoul(values["queued.max.messages.kbytes"]) * kKiB;
    const Bytes fetch = std::stoul(values["max.partition.fetch.bytes"]);
    EXPECT_LE(32 * prefetch, memory / 4) << memory;
    EXPECT_LE(2 * fetch, prefetch) << memory;
  }
}

TEST(KafkaSettingsTest, RefusalsNameTheSettingAndTheReason) {
  const auto producer = [](std::string name, std::string value) {
    const auto result = producer_settings({{std::move(name), std::move(value)}});
    return result ? "accepted" : result.error().message;
  };
  const auto consumer = [](std::string name, std::string value) {
    const auto result = consumer_settings({{std::move(name), std::move(value)}});
    return result ? "accepted" : result.error().message;
  };
  EXPECT_THAT(consumer("enable.auto.commit", "true"),
              HasSubstr("enable.auto.commit: an offset is committed only after"));
  EXPECT_THAT(producer("delivery.timeout.ms", "120000"), HasSubstr("never given up"));
  EXPECT_THAT(producer("batch.sise", "1"), HasSubstr("batch.sise: not a producer setting"));
  EXPECT_THAT(producer("linger.ms", "soon"), HasSubstr("linger.ms: 'soon' is not a time"));
  EXPECT_THAT(producer("max.in.flight.requests.per.connection", "6"), HasSubstr("at most 5"));
  EXPECT_THAT(producer("compression.type", "brotli"), HasSubstr("brotli"));
  EXPECT_THAT(producer("buffer.memory", "10 parsecs"), HasSubstr("is not a size"));
  EXPECT_THAT(producer("transactional.id", "x"), HasSubstr("transactions"));
  EXPECT_THAT(consumer("fetch.max.bytes", "1000"), HasSubstr("never be read"));
  EXPECT_THAT(consumer("group.protocol", "consumer"), HasSubstr("classic"));
  EXPECT_THAT(consumer("auto.offset.reset", "first"), HasSubstr("earliest"));
  EXPECT_THAT(producer("ssl.truststore.location", "/x.jks"), HasSubstr("ssl.ca.location"));
  EXPECT_EQ(producer("key.serializer", "org.apache.kafka.common.serialization.StringSerializer"), "accepted");
  EXPECT_EQ(consumer("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor"), "accepted");
}

TEST(KafkaSettingsTest, WhatTheClientLibraryDoesNotTakeIsRefusedWhereItStands) {
  const auto refused = [](const char* name, const char* value) {
    const auto result = consumer_settings({{name, value}});
    return result ? "accepted" : result.error().message;
  };
  for (const auto* name : {"session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"}) {
    EXPECT_THAT(refused(name, "48h"), testing::AllOf(testing::StartsWith(name), HasSubstr("range")));
    EXPECT_THAT(refused(name, "0"), testing::AllOf(testing::StartsWith(name), HasSubstr("range")));
  }
  EXPECT_THAT(refused("fetch.max.wait.ms", "6m"), HasSubstr("0..300000"));
  EXPECT_THAT(refused("fetch.min.bytes", "200MB"), HasSubstr("1..100000000"));
  EXPECT_THAT(refused("max.partition.fetch.bytes", "2GiB"), HasSubstr("range"));
  EXPECT_THAT(refused("security.protocol", "tls"), testing::StartsWith("security.protocol: "));
  EXPECT_THAT(refused("sasl.user", "x"), HasSubstr("sasl.user"));
  EXPECT_THAT(producer_settings({{"linger.ms", "1h"}}).error().message, testing::StartsWith("linger.ms: "));
}

TEST(KafkaSettingsTest, SettingsThatDoNotFitTogetherAreRefusedByName) {
  ConsumerSettings settings;
  settings.topics = {"t"};
  EXPECT_TRUE(check(settings));
  EXPECT_TRUE(try_rdkafka_consumer(settings));
  settings.low_watermark = settings.high_watermark;
  EXPECT_THAT(check(settings).error().message, testing::StartsWith("low_watermark: 1000 is not below high_watermark"));
  settings.low_watermark = 0;
  settings.session_timeout = 6min;
  EXPECT_THAT(check(settings).error().message, testing::StartsWith("session.timeout.ms: 6m is not below max.poll"));
  settings.session_timeout = 10s;
  settings.passed_through = {{"security.protocol", "sasl_plaintext"}, {"sasl.mechanism", "SCRAM"}};
  EXPECT_THAT(try_rdkafka_consumer(settings).error().message, HasSubstr("SCRAM"));
  settings.passed_through = {{"security.protocol", "ssl"}, {"ssl.ca.location", "/no/such/file"}};
  EXPECT_THAT(try_rdkafka_consumer(settings).error().message, HasSubstr("ssl.ca.location"));
}

TEST(KafkaSettingsTest, SecurityIsPassedThroughAndSecretsAreNotShown) {
  auto settings = producer_settings({{"security.protocol", "SASL_PLAINTEXT"},
                                     {"sasl.mechanism", "PLAIN"},
                                     {"sasl.username", "u"},
                                     {"sasl.password", "p"}});
  ASSERT_TRUE(settings.has_value());
  auto producer = Producer::open(*settings);
  ASSERT_TRUE(producer.has_value()) << producer.error().message;
  auto values = by_name((*producer)->in_force());
  EXPECT_EQ(values["security.protocol"], "SASL_PLAINTEXT");
  EXPECT_EQ(values["sasl.password"], "(hidden)");
  for (const char* name :
       {"ssl.key.pem", "ssl.key.password", "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret"})
    EXPECT_TRUE(is_secret(name)) << name;
  for (const char* name : {"sasl.username", "ssl.key.location", "bootstrap.servers", "linger.ms"})
    EXPECT_FALSE(is_secret(name)) << name;
  settings->passed_through = {{"sasl.oauthbearer.config", "principal=me"}, {"sasl.mechanism", "OAUTHBEARER"}};
  producer = Producer::open(*settings);
  ASSERT_TRUE(producer.has_value()) << producer.error().message;
  EXPECT_EQ(by_name((*producer)->in_force())["sasl.oauthbearer.config"], "(hidden)");
}

TEST(KafkaSettingsTest, ProducerSettingsThatCannotWorkAreRefusedByNameAndNotByAnEnd) {
  const auto refused = [](auto change) {
    ProducerSettings settings;
    change(settings);
    auto producer = Producer::open(settings);
    return producer ? std::string("taken") : producer.error().message;
  };
  EXPECT_THAT(refused([](auto& s) { s.lane_weights = {16, 3, 0}; }), testing::StartsWith("lane_weights: "));
  EXPECT_THAT(refused([](auto& s) { s.window = true, s.window_floor = 0; }), testing::StartsWith("window_floor: "));
  EXPECT_THAT(refused([](auto& s) { s.window = true, s.lag_target = 0s; }), testing::StartsWith("lag_target: "));
  EXPECT_THAT(refused([](auto& s) { s.pause_sleep = 0s; }), testing::StartsWith("pause_sleep: "));
  EXPECT_THAT(refused([](auto& s) { s.messages_per_second = -1; }), testing::StartsWith("messages_per_second: "));
  EXPECT_THAT(refused([](auto& s) { s.acks = "2"; }), testing::StartsWith("acks: "));
  EXPECT_THAT(refused([](auto& s) { s.max_in_flight = 6; }), testing::StartsWith("max.in.flight.requests"));
  EXPECT_EQ(refused([](auto& s) { s.acks = "1", s.max_in_flight = 6; }), "taken");
}

TEST(KafkaSettingsTest, SizesAndTimesMayHaveUnitsAndBareNumbersMeanWhatTheyMeanInKafka) {
  const auto settings = producer_settings(
      {{"buffer.memory", "64MiB"}, {"batch.size", " 17000 "}, {"linger.ms", "250"}, {"max.block.ms", "10s"}});
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->buffer_memory, 64 * kMiB);
  EXPECT_EQ(settings->batch_size, 17000u);
  EXPECT_EQ(settings->linger, 250ms);
  EXPECT_EQ(settings->max_block, 10s);
  for (const auto* bad : {"", "-1", "10 parsecs", "99999999999999999999"}) {
    EXPECT_FALSE(producer_settings({{"linger.ms", bad}}).has_value()) << bad;
    EXPECT_FALSE(producer_settings({{"buffer.memory", bad}}).has_value()) << bad;
  }
}

}  // namespace
}  // namespace weir::client
