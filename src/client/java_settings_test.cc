#include "client/java_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "client/kafka_settings.h"
#include "client/rdkafka_common.h"

namespace weir::client {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Every name of ProducerConfig and ConsumerConfig in Apache Kafka 4.3.1, and what 3.x had besides.
constexpr const char* kBothNames[] = {"bootstrap.servers",
                                      "client.dns.lookup",
                                      "client.id",
                                      "config.providers",
                                      "connections.max.idle.ms",
                                      "enable.metrics.push",
                                      "interceptor.classes",
                                      "metadata.max.age.ms",
                                      "metadata.recovery.rebootstrap.trigger.ms",
                                      "metadata.recovery.strategy",
                                      "metric.reporters",
                                      "metrics.num.samples",
                                      "metrics.recording.level",
                                      "metrics.sample.window.ms",
                                      "receive.buffer.bytes",
                                      "reconnect.backoff.max.ms",
                                      "reconnect.backoff.ms",
                                      "request.timeout.ms",
                                      "retry.backoff.max.ms",
                                      "retry.backoff.ms",
                                      "sasl.client.callback.handler.class",
                                      "sasl.jaas.config",
                                      "sasl.kerberos.kinit.cmd",
                                      "sasl.kerberos.min.time.before.relogin",
                                      "sasl.kerberos.service.name",
                                      "sasl.kerberos.ticket.renew.jitter",
                                      "sasl.kerberos.ticket.renew.window.factor",
                                      "sasl.login.callback.handler.class",
                                      "sasl.login.class",
                                      "sasl.login.connect.timeout.ms",
                                      "sasl.login.read.timeout.ms",
                                      "sasl.login.refresh.buffer.seconds",
                                      "sasl.login.refresh.min.period.seconds",
                                      "sasl.login.refresh.window.factor",
                                      "sasl.login.refresh.window.jitter",
                                      "sasl.login.retry.backoff.max.ms",
                                      "sasl.login.retry.backoff.ms",
                                      "sasl.mechanism",
                                      "sasl.oauthbearer.assertion.algorithm",
                                      "sasl.oauthbearer.assertion.claim.aud",
                                      "sasl.oauthbearer.assertion.claim.exp.seconds",
                                      "sasl.oauthbearer.assertion.claim.iss",
                                      "sasl.oauthbearer.assertion.claim.jti.include",
                                      "sasl.oauthbearer.assertion.claim.nbf.seconds",
                                      "sasl.oauthbearer.assertion.claim.sub",
                                      "sasl.oauthbearer.assertion.file",
                                      "sasl.oauthbearer.assertion.private.key.file",
                                      "sasl.oauthbearer.assertion.private.key.passphrase",
                                      "sasl.oauthbearer.assertion.template.file",
                                      "sasl.oauthbearer.client.credentials.client.id",
                                      "sasl.oauthbearer.client.credentials.client.secret",
                                      "sasl.oauthbearer.clock.skew.seconds",
                                      "sasl.oauthbearer.expected.audience",
                                      "sasl.oauthbearer.expected.issuer",
                                      "sasl.oauthbearer.header.urlencode",
                                      "sasl.oauthbearer.jwks.endpoint.refresh.ms",
                                      "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
                                      "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
                                      "sasl.oauthbearer.jwks.endpoint.url",
                                      "sasl.oauthbearer.jwt.retriever.class",
                                      "sasl.oauthbearer.jwt.validator.class",
                                      "sasl.oauthbearer.scope",
                                      "sasl.oauthbearer.scope.claim.name",
                                      "sasl.oauthbearer.sub.claim.name",
                                      "sasl.oauthbearer.token.endpoint.url",
                                      "security.protocol",
                                      "security.providers",
                                      "send.buffer.bytes",
                                      "socket.connection.setup.timeout.max.ms",
                                      "socket.connection.setup.timeout.ms",
                                      "ssl.cipher.suites",
                                      "ssl.enabled.protocols",
                                      "ssl.endpoint.identification.algorithm",
                                      "ssl.engine.factory.class",
                                      "ssl.key.password",
                                      "ssl.keymanager.algorithm",
                                      "ssl.keystore.certificate.chain",
                                      "ssl.keystore.key",
                                      "ssl.keystore.location",
                                      "ssl.keystore.password",
                                      "ssl.keystore.type",
                                      "ssl.protocol",
                                      "ssl.provider",
                                      "ssl.secure.random.implementation",
                                      "ssl.trustmanager.algorithm",
                                      "ssl.truststore.certificates",
                                      "ssl.truststore.location",
                                      "ssl.truststore.password",
                                      "ssl.truststore.type",
                                      "auto.include.jmx.reporter"};
constexpr const char* kProducerNames[] = {"acks",
                                          "batch.size",
                                          "buffer.memory",
                                          "compression.gzip.level",
                                          "compression.lz4.level",
                                          "compression.type",
                                          "compression.zstd.level",
                                          "delivery.timeout.ms",
                                          "enable.idempotence",
                                          "key.serializer",
                                          "linger.ms",
                                          "max.block.ms",
                                          "max.in.flight.requests.per.connection",
                                          "max.request.size",
                                          "metadata.max.idle.ms",
                                          "partitioner.adaptive.partitioning.enable",
                                          "partitioner.availability.timeout.ms",
                                          "partitioner.class",
                                          "partitioner.ignore.keys",
                                          "retries",
                                          "transaction.timeout.ms",
                                          "transaction.two.phase.commit.enable",
                                          "transactional.id",
                                          "value.serializer"};
constexpr const char* kConsumerNames[] = {"allow.auto.create.topics",
                                          "auto.commit.interval.ms",
                                          "auto.offset.reset",
                                          "check.crcs",
                                          "client.rack",
                                          "default.api.timeout.ms",
                                          "enable.auto.commit",
                                          "exclude.internal.topics",
                                          "fetch.max.bytes",
                                          "fetch.max.wait.ms",
                                          "fetch.min.bytes",
                                          "group.id",
                                          "group.instance.id",
                                          "group.protocol",
                                          "group.remote.assignor",
                                          "heartbeat.interval.ms",
                                          "internal.throw.on.fetch.stable.offset.unsupported",
                                          "isolation.level",
                                          "key.deserializer",
                                          "max.partition.fetch.bytes",
                                          "max.poll.interval.ms",
                                          "max.poll.records",
                                          "partition.assignment.strategy",
                                          "session.timeout.ms",
                                          "share.acknowledgement.mode",
                                          "share.acquire.mode",
                                          "value.deserializer"};

std::string producer(const std::string& name, const std::string& value) {
  const auto result = producer_settings({{name, value}});
  return result ? "accepted" : result.error().message;
}
std::string consumer(const std::string& name, const std::string& value) {
  const auto result = consumer_settings({{name, value}});
  return result ? "accepted" : result.error().message;
}
std::string told(const RdSettings& list, const std::string& name) {
  std::string value = "none";
  for (const auto& [known, text] : list)
    if (known == name) value = text;
  return value;
}

TEST(JavaSettingsTest, EveryNameTheJavaClientHasIsTranslatedOrRefusedWithAReason) {
  const auto unknown = AnyOf(HasSubstr("weir knows"), HasSubstr("No such configuration"));
  for (const char* value : {"", "1", "true", "x"}) {
    for (const auto* name : kBothNames) {
      EXPECT_THAT(producer(name, value), Not(unknown)) << name;
      EXPECT_THAT(consumer(name, value), Not(unknown)) << name;
    }
    for (const auto* name : kProducerNames) EXPECT_THAT(producer(name, value), Not(unknown)) << name;
    for (const auto* name : kConsumerNames) EXPECT_THAT(consumer(name, value), Not(unknown)) << name;
  }
  EXPECT_THAT(producer("retry.backoff.max.msx", "1"), HasSubstr("not a producer setting weir knows"));
}

TEST(JavaSettingsTest, WhatIsSoAnywayIsAcceptedAndNothingElse) {
  EXPECT_EQ(producer("enable.metrics.push", "false"), "accepted");
  EXPECT_THAT(producer("enable.metrics.push", "true"), StartsWith("enable.metrics.push: librdkafka 2.0.2 pushes no"));
  EXPECT_EQ(consumer("client.dns.lookup", "use_all_dns_ips"), "accepted");
  EXPECT_THAT(consumer("client.dns.lookup", "use"), HasSubstr("use_all_dns_ips only"));
  EXPECT_EQ(consumer("exclude.internal.topics", "TRUE"), "accepted");
  EXPECT_THAT(consumer("exclude.internal.topics", "maybe"), HasSubstr("neither"));
  EXPECT_EQ(producer("ssl.keystore.type", "PKCS12"), "accepted");
  EXPECT_THAT(producer("ssl.keystore.type", "JKS"), HasSubstr("PKCS12 only"));
  EXPECT_EQ(producer("interceptor.classes", ""), "accepted");
  EXPECT_THAT(producer("retry.backoff.max.ms", "1000"), HasSubstr("librdkafka 2.0.2 has no such setting"));
  EXPECT_THAT(consumer("default.api.timeout.ms", "60000"), HasSubstr("librdkafka has no such setting"));
  EXPECT_THAT(producer("ssl.keystore.key", "hunter2"), Not(HasSubstr("hunter2")));
}

TEST(JavaSettingsTest, LevelOfACodecIsThatOfTheCodecInUse) {
  const auto settings = producer_settings(
      {{"compression.gzip.level", "6"}, {"compression.zstd.level", "11"}, {"compression.type", "zstd"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(told(library_settings(*settings), "compression.level"), "11");
  EXPECT_EQ(told(library_settings(*producer_settings({{"compression.gzip.level", "6"}})), "compression.level"), "none");
  EXPECT_THAT(producer("compression.gzip.level", "10"), HasSubstr("from 1 to 9"));
  EXPECT_EQ(producer("compression.gzip.level", "-1"), "accepted");
  EXPECT_THAT(producer("compression.lz4.level", "17"), HasSubstr("from 1 to 12 for librdkafka"));
  EXPECT_THAT(producer("compression.zstd.level", "-5"), HasSubstr("from 1 to 12"));
  const auto high = producer_settings({{"compression.level", "12"}, {"compression.type", "gzip"}});
  ASSERT_FALSE(high);
  EXPECT_THAT(high.error().message, HasSubstr("compression.level: 12 is above 9, the highest of gzip"));
  EXPECT_TRUE(producer_settings({{"compression.level", "9"}, {"compression.type", "gzip"}}));
  EXPECT_TRUE(producer_settings({{"compression.level", "12"}, {"compression.type", "lz4"}}));
}

TEST(JavaSettingsTest, UnitsOfWhatIsPassedThroughAreReadAndNotCut) {
  const auto given = [](const char* name, const char* value, const char* library_name) {
    const auto settings = consumer_settings({{name, value}});
    return settings ? told(library_settings(*settings), library_name) : settings.error().message;
  };
  EXPECT_EQ(given("socket.timeout.ms", "30s", "socket.timeout.ms"), "30000");
  EXPECT_EQ(given("request.timeout.ms", "40000", "socket.timeout.ms"), "40000");
  EXPECT_EQ(given("receive.buffer.bytes", "128KiB", "socket.receive.buffer.bytes"), "131072");
  EXPECT_EQ(given("send.buffer.bytes", "-1", "socket.send.buffer.bytes"), "0");
  EXPECT_EQ(given("connections.max.idle.ms", "-1", "connections.max.idle.ms"), "0");
  EXPECT_EQ(given("check.crcs", "yes", "check.crcs"), "true");
  EXPECT_EQ(given("ssl.endpoint.identification.algorithm", "", "ssl.endpoint.identification.algorithm"), "none");
  EXPECT_THAT(given("reconnect.backoff.ms", "soon", "-"), HasSubstr("is not a time"));
}

TEST(JavaSettingsTest, WhatTheLibraryWouldCutToItsIntIsRefusedWithTheRange) {
  EXPECT_EQ(producer("max.request.size", "1000000001"), "max.request.size: 1000000001 is not from 1000 to 1000000000");
  EXPECT_EQ(producer("max.request.size", "999"), "max.request.size: 999 is not from 1000 to 1000000000");
  EXPECT_EQ(producer("max.request.size", "1000000000"), "accepted");
  EXPECT_EQ(producer("batch.size", "4294967396"), "batch.size: 4294967396 is not from 1 to 2147483647");
  EXPECT_THAT(producer("linger.ms", "4294967297"), HasSubstr("4294967297 is outside allowed range 0..900000"));
  EXPECT_THAT(producer("request.timeout.ms", "4294967397"), HasSubstr("outside allowed range 1..900000"));
  EXPECT_THAT(consumer("fetch.max.wait.ms", "4294967797"), HasSubstr("outside allowed range 0..300000"));
  EXPECT_THAT(consumer("fetch.min.bytes", "4294967396"), HasSubstr("outside allowed range 1..100000000"));
  EXPECT_THAT(consumer("max.partition.fetch.bytes", "4294968320"), HasSubstr("outside allowed range 1..1000000000"));
  EXPECT_THAT(consumer("connections.max.idle.ms", "4294967297"), HasSubstr("2147483647"));
  EXPECT_EQ(producer("client.id", "99999999999"), "accepted");
  EXPECT_EQ(producer("sasl.password", "99999999999"), "accepted");
  ProducerSettings large;
  large.max_request_size = 2'000'000'000;
  EXPECT_THAT(check(large).error().message, StartsWith("max.request.size: 2000000000 is not from 1 to 1000000000"));
}

TEST(JavaSettingsTest, HeartbeatThatWasSetIsNotShortened) {
  EXPECT_EQ(consumer_settings({{"session.timeout.ms", "6s"}})->heartbeat_interval, 2s);
  for (const auto& order : {KafkaSettings{{"session.timeout.ms", "6s"}, {"heartbeat.interval.ms", "5s"}},
                            KafkaSettings{{"heartbeat.interval.ms", "5s"}, {"session.timeout.ms", "6s"}}})
    EXPECT_EQ(consumer_settings(order)->heartbeat_interval, 5s);
  auto settings = consumer_settings({{"heartbeat.interval.ms", "10s"}});
  ASSERT_TRUE(settings);
  settings->topics = {"t"};
  EXPECT_THAT(check(*settings).error().message, StartsWith("heartbeat.interval.ms: 10s is not below session.timeout"));
}

}  // namespace
}  // namespace weir::client
