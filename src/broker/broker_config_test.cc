#include "broker/broker_config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "broker/metadata_record.h"
#include "broker/stranger.h"
#include "broker/topics.h"
#include "runtime/temp_directory.h"

namespace weir::broker {
namespace {

TEST(BrokerConfig, ReadsServerPropertiesAndNamesTheLineThatIsWrong) {
  BrokerConfig config;
  ASSERT_TRUE(config.parse("# a comment\n\n num.partitions  3\nlog.dirs:/tmp/x\nlog.retention.minutes=\\\n  2\n",
                           "server.properties"));
  EXPECT_EQ(config.num_partitions, 3);
  EXPECT_EQ(config.log_dir, "/tmp/x");
  EXPECT_EQ(config.log_retention_ms, 120000);
  const auto bad = config.parse("a=1\nnum.partitions=zero\n", "server.properties");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "server.properties:2: num.partitions: 'zero' is not a whole number");
  EXPECT_EQ(config.parse("a=1\nb=\\u12\n", "f").error().message, "f:2: a broken \\u escape");
  EXPECT_FALSE(config.set("num.partitions=0"));
  EXPECT_FALSE(config.set("log.message.timestamp.type=Later"));
}

TEST(BrokerConfig, NotesWhatHasNoEffectHere) {
  BrokerConfig config;
  ASSERT_TRUE(config.set("num.replica.fetchers=4"));
  ASSERT_TRUE(config.set("no.such.setting=4"));
  ASSERT_EQ(config.notices().size(), 2u);
  EXPECT_NE(config.notices()[0].find("does not replicate"), std::string::npos);
  EXPECT_NE(config.notices()[1].find("not a setting of the broker"), std::string::npos);
}

TEST(BrokerConfig, TheMoreSpecificNameWins) {
  BrokerConfig config;
  ASSERT_TRUE(config.set("log.retention.hours=1"));
  EXPECT_EQ(config.log_retention_ms, 3600000);
  ASSERT_TRUE(config.set("log.retention.ms=-1"));
  EXPECT_EQ(config.log_retention_ms, -1);
  EXPECT_EQ(config.describe("log.retention.ms")->value, "-1");
  ASSERT_TRUE(config.set("broker.id=7"));
  EXPECT_EQ(config.node_id, 7);
  ASSERT_TRUE(config.set("node.id=8"));
  EXPECT_EQ(config.node_id, 8);
}

TEST(BrokerConfig, WhatIsNoServerPropertiesIsNamed) {
  const runtime::TempDirectory dir;
  const auto load = [&](const std::string& name, std::string_view text) -> std::string {
    const auto path = dir.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    const auto done = BrokerConfig().load(path.string());
    return done ? "" : done.error().message.substr(path.string().size());
  };
  EXPECT_EQ(load("good", "# Kafka's\nnum.partitions: 3\nlog.cleanup.policy=\\\n  delete\r\n"), "");
  EXPECT_NE(load("other", "broker:\n  listen: x\n").find("YAML"), std::string::npos);
  EXPECT_NE(load("list", "a=b\n---\n").find("YAML"), std::string::npos);
  EXPECT_NE(load("weir.yaml", "num.partitions: 3\n").find("YAML"), std::string::npos);
  EXPECT_EQ(load("program", std::string_view("\x7f"
                                             "ELF\0\1",
                                             6)),
            ": is not a text file; it must be a server.properties: one name=value a line");
  EXPECT_NE(BrokerConfig().load(dir.path().string()).error().message.find("is a directory"), std::string::npos);
}

TEST(BrokerConfig, ListenersAndReplicationFactorsAreCheckedAtTheEnd) {
  BrokerConfig config;
  ASSERT_TRUE(config.set("listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093"));
  ASSERT_TRUE(config.finish());
  EXPECT_EQ(config.listeners, (std::vector<HostPort>{{"127.0.0.1", 0}}));
  ASSERT_TRUE(config.set("listeners=SSL://127.0.0.1:0"));
  EXPECT_FALSE(config.finish());
  BrokerConfig replicated;
  ASSERT_TRUE(replicated.set("offsets.topic.replication.factor=3"));
  EXPECT_FALSE(replicated.finish());
  ASSERT_TRUE(replicated.set("weir.replication.factor.clamp=true"));
  ASSERT_TRUE(replicated.set("min.insync.replicas=2"));
  ASSERT_TRUE(replicated.finish());
  EXPECT_EQ(replicated.min_insync_replicas, 1);
  EXPECT_EQ(replicated.offsets_topic_replication_factor, 1);
}

RC_GTEST_PROP(MetadataRecord, ComesBackAsItWas, ()) {
  const auto text = rc::gen::string<std::string>();
  std::vector<MetadataRecord> records{ClusterRecord{*text},
                                      TopicRecord{*text, wire::random_uuid(), *rc::gen::inRange(1, 1000)},
                                      TopicDeletedRecord{*text, wire::random_uuid()},
                                      ConfigRecord{*rc::gen::arbitrary<std::int8_t>(), *text, *text,
                                                   *rc::gen::element<std::optional<std::string>>(std::nullopt, "v")},
                                      QuotaRecord{{{"client-id", *text}, {"user", std::nullopt}},
                                                  *text,
                                                  *rc::gen::element<std::optional<double>>(std::nullopt, 1.5)},
                                      ProducerIdsRecord{*rc::gen::arbitrary<std::int64_t>()}};
  const auto bytes = encode(records);
  const auto back = decode_metadata_records(bytes);
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == records);
  const auto cut = *rc::gen::inRange<std::size_t>(1, bytes.size());
  const auto part = decode_metadata_records(ByteView(bytes).first(cut));
  RC_ASSERT(!part || part->size() < records.size());
}

TEST(Topics, NamesFollowKafkasRules) {
  EXPECT_FALSE(topic_name_fault("a.b_c-1"));
  for (const char* bad : {"", ".", "..", "a b", "a/b", "\xc3\xa9"}) EXPECT_TRUE(topic_name_fault(bad)) << bad;
  EXPECT_FALSE(topic_name_fault(std::string(249, 'a')));
  EXPECT_TRUE(topic_name_fault(std::string(250, 'a')));
}

TEST(Stranger, IsTold) {
  EXPECT_NE(guess_stranger(as_bytes("GET / HTTP/1.1")).find("HTTP"), std::string::npos);
  EXPECT_NE(guess_stranger(as_bytes(std::string_view("\x16\x03\x01\x00", 4))).find("TLS"), std::string::npos);
  EXPECT_NE(guess_stranger(as_bytes(std::string_view("\x15\x03\x01\x00", 4))).find("TLS"), std::string::npos);
  EXPECT_EQ(guess_stranger(as_bytes("hello")), "");
}

}  // namespace
}  // namespace weir::broker
