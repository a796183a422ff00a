#include "pipeline/settings.h"

#include <gtest/gtest.h>

namespace weir::pipeline {
namespace {

Result<Settings> read(const std::string& text) {
  return parse_config(text, "w.yaml").and_then([](const auto& sections) { return read_settings(sections); });
}
std::string error_of(const std::string& text) {
  const auto settings = read(text);
  return settings ? "no error" : settings.error().message;
}

TEST(Settings, WhatIsOutOfRangeIsSaidWithItsPlaceAndItsRange) {
  EXPECT_EQ(error_of("agent:\n  line_limit: 1B\n"), "w.yaml:2: line_limit: 1B is not from 64B to 16MiB");
  EXPECT_EQ(error_of("agent:\n  line_limit: 1GiB\n"), "w.yaml:2: line_limit: 1GiB is not from 64B to 16MiB");
  EXPECT_EQ(error_of("agent:\n  scan_period: 0s\n"), "w.yaml:2: scan_period: 0s is not from 1ms to 24h");
  EXPECT_EQ(error_of("limits:\n  bytes_per_second: 0\n"), "w.yaml:2: bytes_per_second: 0 is not from 1B to 1024GiB");
  EXPECT_EQ(error_of("limits:\n  messages_per_second: nan\n"),
            "w.yaml:2: messages_per_second: 'nan' is not a whole number from 1 to 1000000000000");
  EXPECT_EQ(error_of("guard:\n  listen: here\n"),
            "w.yaml:2: listen: 'here' is not an address to listen on; write it like 127.0.0.1:8080");
  EXPECT_EQ(error_of("guard:\n  listen: example.org:80\n"),
            "w.yaml:2: listen: 'example.org:80' is not an address to listen on; write it like 127.0.0.1:8080");
}

TEST(Settings, WindowIsReleasedAfterATimeOrNever) {
  EXPECT_EQ(read("limits:\n  window_release_after: 30s\n")->producer.window_release_after, std::chrono::seconds(30));
  EXPECT_EQ(read("limits:\n  window_release_after: 0s\n")->producer.window_release_after, Duration::zero());
  EXPECT_EQ(error_of("limits:\n  window_release_after: 25h\n"),
            "w.yaml:2: window_release_after: 25h is not from 1ms to 24h, nor 0s, which means never");
}

TEST(Settings, TopicNamesAreCheckedBeforeABrokerSeesThem) {
  for (const char* bad : {"'a b'", "..", "'日志'", "''", "a/b"})
    EXPECT_TRUE(error_of(std::string("agent:\n  topic: ") + bad + "\n").starts_with("w.yaml:2: topic: '")) << bad;
  EXPECT_FALSE(check_topic_name(std::string(250, 'a')));
  EXPECT_TRUE(check_topic_name(std::string(249, 'a')));
  EXPECT_EQ(error_of("agent:\n  topic: x\n  urgent_topic: x\n"),
            "w.yaml:3: urgent_topic: x is another topic's name: topic, urgent_topic and dead_letter_topic must differ");
  EXPECT_EQ(error_of("sink:\n  dead_letter_topic: logs\n"),
            "w.yaml:2: dead_letter_topic: logs is another topic's name: topic, urgent_topic and dead_letter_topic must "
            "differ");
  EXPECT_EQ(error_of("agent:\n  topic: logs_dead_letter\n").substr(0, 16), "w.yaml:2: topic:");
}

TEST(Settings, BrokerValuesAreTriedWhereTheyStand) {
  EXPECT_TRUE(error_of("broker:\n  num.partitions: 3\n  log.segment.bytes: many\n")
                  .starts_with("w.yaml:3: log.segment.bytes: "))
      << error_of("broker:\n  num.partitions: 3\n  log.segment.bytes: many\n");
  EXPECT_EQ(error_of("broker:\n  listeners: PLAINTEXT://:9092\n"),
            "w.yaml:2: listeners: weir up sets it: see its --listen and --data");
  const auto settings = read("broker:\n  default.replication.factor: 3\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->broker.at(0).where, "w.yaml:2");
}

TEST(Settings, TheGuardLooksWhereTheSinkReads) {
  EXPECT_EQ(read("producer:\n  bootstrap.servers: a:1\n")->guard.admin.bootstrap, "a:1");
  EXPECT_EQ(read("consumer:\n  bootstrap.servers: b:1\nproducer:\n  bootstrap.servers: a:1\n")->guard.admin.bootstrap,
            "b:1");
  EXPECT_EQ(read("kafka:\n  bootstrap.servers: c:1,d:2\n")->guard.admin.bootstrap, "c:1,d:2");
  EXPECT_EQ(read("kafka:\n  bootstrap.servers: c:1\n")->bootstrap_where, "w.yaml:2");
  EXPECT_TRUE(error_of("kafka:\n  bootstrap.servers: 'no port: here'\n").starts_with("w.yaml:2: bootstrap.servers: '"));
}

TEST(Settings, ReadersGetTheirMemoryOutOfBufferMemoryWhichIsShownAsItWasSet) {
  const auto settings = read("producer:\n  buffer.memory: 64MiB\n");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->producer.buffer_memory, 64 * kMiB);
  EXPECT_EQ(settings->producer_of_agent().buffer_memory + agent::Agent::reader_memory(settings->agent), 64 * kMiB);
  const auto small = read("producer:\n  buffer.memory: 1MiB\nagent:\n  line_limit: 16MiB\n");
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->producer_of_agent().buffer_memory, kMiB) << "the least a producer takes";
}

TEST(Settings, AddressesOfTheClusterHaveAPort) {
  EXPECT_TRUE(error_of("kafka:\n  bootstrap.servers: localhost\n").starts_with("w.yaml:2: bootstrap.servers: 'loc"));
}

TEST(Settings, WhatTheClientLibraryWouldCutIsRefusedWhereItStands) {
  EXPECT_EQ(error_of("producer:\n  max.request.size: 2GiB\n"),
            "w.yaml:2: max.request.size: 2GiB is not from 1000 to 1000000000");
  const std::string batch = error_of("producer:\n  batch.size: 4294967396\n");
  EXPECT_EQ(batch, "w.yaml:2: batch.size: 4294967396 is not from 1 to 2147483647");
}

TEST(Settings, HttpAddressesAreNumbersOrLocalhost) {
  http::ServerSettings http;
  ASSERT_TRUE(set_http_address(http, "[::1]:99"));
  EXPECT_EQ(http.host, "::1");
  ASSERT_TRUE(set_http_address(http, "0"));
  EXPECT_EQ(http.port, 0);
  ASSERT_TRUE(set_http_address(http, "localhost:8080"));
  EXPECT_FALSE(set_http_address(http, "127.0.0.1:99999"));
}

TEST(Settings, SinkSettingsThatDoNotFitTogetherAreSaidWhereOneOfThemStands) {
  EXPECT_EQ(error_of("sink:\n  attempts: 2\n  high_watermark: 400\n"),
            "w.yaml:3: low_watermark: 500 is not below high_watermark, which is 400");
  EXPECT_EQ(error_of("consumer:\n  max.poll.interval.ms: 5s\n"),
            "w.yaml:2: session.timeout.ms: 10s is not below max.poll.interval.ms, which is 5s");
  const std::string file = error_of("kafka:\n  security.protocol: ssl\n  ssl.ca.location: /no/such/file\n");
  EXPECT_TRUE(file.starts_with("w.yaml:3: ")) << file;
  const std::string sasl = error_of("kafka:\n  security.protocol: sasl_plaintext\n  sasl.mechanism: SCRAMBLE\n");
  EXPECT_TRUE(sasl.starts_with("w.yaml:3: sasl.mechanism: ")) << sasl;
  const std::string range = error_of("consumer:\n  session.timeout.ms: 2h\n");
  EXPECT_TRUE(range.starts_with("w.yaml:2: session.timeout.ms: ")) << range;
}

}  // namespace
}  // namespace weir::pipeline
