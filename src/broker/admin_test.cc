// Topics and settings: what may be created, altered and deleted, what is answered, and that it is still so after a
// crash.
#include <gtest/gtest.h>

#include <algorithm>

#include "broker/core_harness.h"
#include "broker/quota.h"
#include "protocol/messages/20_delete_topics.h"
#include "protocol/messages/32_describe_configs.h"
#include "protocol/messages/44_incremental_alter_configs.h"
#include "protocol/messages/49_alter_client_quotas.h"
#include "protocol/messages/60_describe_cluster.h"

namespace weir::broker {
namespace {

using protocol::CreateTopicsRequest;
using protocol::ErrorCode;
using protocol::MetadataRequest;
using Records = std::vector<std::pair<std::int64_t, std::string>>;

CreateTopicsRequest::CreatableTopic topic(const std::string& name, std::int32_t partitions = 1,
                                          std::int16_t factor = 1) {
  return {.name = name, .num_partitions = partitions, .replication_factor = factor};
}
ErrorCode create(CoreHarness& h, CreateTopicsRequest::CreatableTopic wanted, std::string* message = nullptr) {
  CreateTopicsRequest request;
  request.topics.push_back(std::move(wanted));
  const auto response = h.ask(request, 7);
  if (message != nullptr) *message = response.topics[0].error_message.value_or("");
  return response.topics[0].error_code;
}
MetadataRequest asking(const std::string& name, bool may_create = true) {
  MetadataRequest request{.topics = std::vector<MetadataRequest::MetadataRequestTopic>{{.name = name}}};
  request.allow_auto_topic_creation = may_create;
  return request;
}
std::string setting(CoreHarness& h, std::int8_t type, const std::string& resource, const std::string& name,
                    std::int8_t* source = nullptr) {
  protocol::DescribeConfigsRequest request;
  request.resources.push_back(
      {.resource_type = type, .resource_name = resource, .configuration_keys = std::vector<std::string>{name}});
  const auto response = h.ask(request, 4);
  if (response.results.at(0).configs.empty()) return "(none)";
  if (source != nullptr) *source = response.results[0].configs[0].config_source;
  return response.results[0].configs[0].value.value_or("(null)");
}
ErrorCode alter(CoreHarness& h, std::int8_t type, const std::string& resource, const std::string& name,
                std::int8_t operation, std::optional<std::string> value) {
  protocol::IncrementalAlterConfigsRequest request;
  request.resources.push_back({.resource_type = type, .resource_name = resource});
  request.resources[0].configs.push_back({.name = name, .config_operation = operation, .value = std::move(value)});
  return h.ask(request, 1).responses.at(0).error_code;
}

TEST(Admin, AnswersKafkasErrorsForTopicsThatCannotBe) {
  CoreHarness h;
  EXPECT_EQ(create(h, topic("a.b")), ErrorCode::kNone);
  EXPECT_EQ(create(h, topic("a.b")), ErrorCode::kTopicAlreadyExists);
  EXPECT_EQ(create(h, topic("a_b")), ErrorCode::kInvalidTopicException);
  EXPECT_EQ(create(h, topic("bad name")), ErrorCode::kInvalidTopicException);
  EXPECT_EQ(create(h, topic("..")), ErrorCode::kInvalidTopicException);
  EXPECT_EQ(create(h, topic("x", 0)), ErrorCode::kInvalidPartitions);
  EXPECT_EQ(create(h, topic("x", 1, 0)), ErrorCode::kInvalidReplicationFactor);
  std::string message;
  EXPECT_EQ(create(h, topic("x", 1, 3), &message), ErrorCode::kInvalidReplicationFactor);
  EXPECT_NE(message.find("weir.replication.factor.clamp"), std::string::npos) << message;
  auto assigned = topic("x", -1, -1);
  assigned.assignments.push_back({.partition_index = 0, .broker_ids = {7}});
  EXPECT_EQ(create(h, assigned), ErrorCode::kInvalidReplicaAssignment);
  assigned.assignments[0].broker_ids = {1};
  EXPECT_EQ(create(h, assigned), ErrorCode::kNone);
  auto configured = topic("y");
  configured.configs.push_back({.name = "retention.ms", .value = "soon"});
  EXPECT_EQ(create(h, configured), ErrorCode::kInvalidConfig);
  CreateTopicsRequest only_checked;
  only_checked.topics.push_back(topic("z"));
  only_checked.validate_only = true;
  EXPECT_EQ(h.ask(only_checked, 7).topics[0].error_code, ErrorCode::kNone);
  EXPECT_EQ(h.core->topics().find("z"), nullptr);
}

TEST(Admin, ClampsTheReplicationFactorWhenAsked) {
  CoreHarness h({"weir.replication.factor.clamp=true", "default.replication.factor=3"});
  EXPECT_EQ(create(h, topic("x", 2, 3)), ErrorCode::kNone);
  EXPECT_EQ(h.ask(asking("auto"), 9).topics[0].error_code, ErrorCode::kNone);
  CoreHarness strict({"default.replication.factor=3"});
  EXPECT_EQ(strict.ask(asking("auto"), 9).topics[0].error_code, ErrorCode::kInvalidReplicationFactor);
}

TEST(Admin, CreatesTopicsOnFirstUseOnceTheyAreDurable) {
  CoreHarness h({"num.partitions=4", "log.message.timestamp.type=LogAppendTime"});
  const auto id = h.send(asking("auto"), 9);
  EXPECT_EQ(h.answer<protocol::MetadataResponse>(id), nullptr);
  h.run_syncs();
  const auto* response = h.answer<protocol::MetadataResponse>(id);
  ASSERT_NE(response, nullptr);
  EXPECT_EQ(response->topics.at(0).partitions.size(), 4u);
  EXPECT_EQ(h.ask(asking("not wanted", false), 9).topics[0].error_code, ErrorCode::kInvalidTopicException);
  EXPECT_EQ(h.ask(asking("unwanted", false), 9).topics[0].error_code, ErrorCode::kUnknownTopicOrPartition);

  h.advance(std::chrono::seconds(5));
  wire::BatchBuilder old;
  old.add(1000, std::nullopt, as_bytes("x"));
  const auto produced = h.ask(h.produce("auto", old.build()), 9);
  EXPECT_EQ(h.only(produced).log_append_time_ms, h.now_ms());
  EXPECT_EQ(h.records(h.ask(h.fetch("auto", 0), 11)).size(), 1u) << "the CRC covers the new stamp";

  CoreHarness off({"auto.create.topics.enable=false"});
  EXPECT_EQ(off.ask(asking("auto"), 9).topics[0].error_code, ErrorCode::kUnknownTopicOrPartition);
}

TEST(Admin, TopicsSettingsAndIdsSurviveACrash) {
  CoreHarness h;
  h.create("kept", 3, {{.name = "retention.ms", .value = "1234"}});
  h.create("gone");
  EXPECT_EQ(alter(h, kBrokerResource, "1", "message.max.bytes", 0, "5000"), ErrorCode::kNone);
  protocol::AlterClientQuotasRequest quota;
  quota.entries.push_back({.entity = {{.entity_type = "client-id", .entity_name = "c"}},
                           .ops = {{.key = "producer_byte_rate", .value = 1000.0}}});
  h.ask(quota, 1);
  protocol::DeleteTopicsRequest remove;
  remove.topics.push_back({.name = "gone"});
  EXPECT_EQ(h.ask(remove, 6).responses[0].error_code, ErrorCode::kNone);
  EXPECT_EQ(h.ask(remove, 6).responses[0].error_code, ErrorCode::kUnknownTopicOrPartition);
  const auto id = h.core->topics().find("kept")->id;
  const auto cluster = h.ask(protocol::DescribeClusterRequest{}, 1).cluster_id;
  h.crash(11);
  ASSERT_NE(h.core->topics().find("kept"), nullptr);
  EXPECT_EQ(h.core->topics().find("kept")->id, id);
  EXPECT_EQ(h.core->topics().find("gone"), nullptr);
  EXPECT_EQ(h.ask(protocol::DescribeClusterRequest{}, 1).cluster_id, cluster);
  EXPECT_EQ(setting(h, kTopicResource, "kept", "retention.ms"), "1234");
  EXPECT_EQ(setting(h, kTopicResource, "kept", "max.message.bytes"), "5000");
  EXPECT_EQ(h.core->quotas().limit("producer_byte_rate", "ANONYMOUS", "c"), 1000.0);
}

TEST(Admin, TheOffsetsTopicIsNotDeleted) {
  CoreHarness h;
  ASSERT_TRUE(h.core->ensure_offsets_topic());
  protocol::DeleteTopicsRequest remove;
  remove.topics.push_back({.name = std::string(kOffsetsTopic)});
  EXPECT_EQ(h.ask(remove, 6).responses[0].error_code, ErrorCode::kInvalidTopicException);
  EXPECT_NE(h.core->topics().find(kOffsetsTopic), nullptr);
}

TEST(Admin, NothingIsPromisedOfATopicWhoseCreationIsNotDurable) {
  CoreHarness h;
  h.create("old");
  h.files.fail_sync(1, "weir-metadata");
  protocol::CreateTopicsRequest create;
  create.topics.push_back({.name = "t", .num_partitions = 1, .replication_factor = 1});
  EXPECT_EQ(h.ask(create, 7).topics[0].error_code, ErrorCode::kKafkaStorageError);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"x"})), 9)).error_code, ErrorCode::kUnknownTopicOrPartition);
  EXPECT_EQ(h.only(h.ask(h.produce("old", h.batch({"x"})), 9)).error_code, ErrorCode::kNone);
}

TEST(Admin, FilesGoOnlyWhenTheEndOfTheirTopicIsDurable) {
  const auto files_left = [](CoreHarness& h) {
    return std::ranges::count_if(h.files.list("data").value(), [](const auto& e) { return e.name.starts_with("t-0"); });
  };
  for (const bool fails : {true, false}) {
    CoreHarness h;
    h.create("t");
    h.ask(h.produce("t", h.batch({"x"})), 9);
    protocol::DeleteTopicsRequest remove;
    remove.topics.push_back({.name = "t"});
    if (fails) h.files.fail_sync(1, "weir-metadata");
    h.send(remove, 6);
    EXPECT_EQ(files_left(h), 1);
    h.run_syncs();
    EXPECT_EQ(files_left(h), fails ? 1 : 0);
  }
}

TEST(Admin, ATopicWhoseDeletionDidNotLastHasItsRecords) {
  int kept = 0;
  for (std::uint64_t seed = 0; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    CoreHarness h;
    h.create("t", 2);
    for (int i = 0; i < 3; ++i) h.ask(h.produce("t", h.batch({"old"})), 9);
    h.restart();  // with a recovery point
    const TopicId id = h.core->topics().find("t")->id;
    protocol::DeleteTopicsRequest remove;
    remove.topics.push_back({.name = "t"});
    if (seed % 2 == 0) h.files.fail_directory_sync(1);
    const auto deletion = h.send(remove, 6);
    if (seed % 2 == 0) {
      h.run_syncs();
      EXPECT_EQ(h.answer<protocol::DeleteTopicsResponse>(deletion)->responses.at(0).error_code,
                ErrorCode::kKafkaStorageError);
    } else if (seed % 4 == 1) {  // made anew, and neither is durable yet
      protocol::CreateTopicsRequest create;
      create.topics.push_back(topic("t", 2));
      h.send(create, 7);
      h.send(h.produce("t", h.batch({"new"})), 9);
    }
    if (seed == 0) {
      h.kill();
      EXPECT_EQ(h.core->topics().find("t"), nullptr) << "nothing was lost, so the deletion was not either";
      EXPECT_EQ(h.files.list("data")->size(), 3u) << "lock, checkpoint, metadata";
      continue;
    }
    h.crash(seed);
    const Topic* found = h.core->topics().find("t");
    if (found == nullptr || found->id != id) continue;
    ++kept;
    EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)), (Records{{0, "old"}, {1, "old"}, {2, "old"}}));
    EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"more"})), 9)).base_offset, 3);
    h.crash(seed + 100);
    EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)).size(), 4u);
  }
  EXPECT_GT(kept, 5);
}

TEST(Admin, NothingKnownOfAStrayDirectoryIsUsedForTheTopicMadeUnderItsName) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"old"})), 9);
  h.restart();
  h.core.reset();
  h.files.kill();
  ASSERT_TRUE(h.files.rename("data/t-0", "data/u-0"));
  const runtime::Path points = "data/recovery-point-offset-checkpoint";
  const auto saved = [&] { return std::string(as_text(h.files.read_all(points, kMiB).value())); };
  ASSERT_TRUE(h.files.replace(points, as_bytes("0\n1\nu 0 100\n")));
  h.start();
  EXPECT_NE(saved().find("u 0 100"), std::string::npos);
  std::string when_created;
  h.files.on_sync([&](const runtime::Path& path) {
    if (path.filename() == "weir-metadata.log") when_created = saved();
  });
  h.create("u");
  h.files.on_sync({});
  EXPECT_EQ(when_created, "0\n0\n") << "before the new topic can be durable";

  // A disk too full to write them anew: none are better than another's.
  h.core.reset();
  h.files.kill();
  ASSERT_TRUE(h.files.rename("data/u-0-stray", "data/v-0"));
  ASSERT_TRUE(h.files.replace(points, as_bytes("0\n1\nv 0 100\n")));
  h.start();
  h.files.fail_sync(1, "recovery-point");
  h.create("v");
  EXPECT_FALSE(h.files.exists(points));
}

TEST(Admin, ANewTopicDoesNotBeginWithTheRecordsOfAStrayDirectory) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"old"})), 9);
  // What a power cut leaves that takes back the creation: the files of a partition, and no topic.
  h.restart();
  h.core.reset();
  h.files.kill();
  ASSERT_TRUE(h.files.rename("data/t-0", "data/u-0"));
  h.start();
  h.create("u");
  EXPECT_TRUE(h.files.exists("data/u-0-stray"));
  EXPECT_EQ(h.only(h.ask(h.produce("u", h.batch({"new"})), 9)).base_offset, 0);
  h.crash(3);
  EXPECT_EQ(h.records(h.ask(h.fetch("u", 0), 11)), (std::vector<std::pair<std::int64_t, std::string>>{{0, "new"}}));
}

TEST(Admin, ADeletedTopicIsEmptyWhenMadeAgain) {
  CoreHarness h;
  h.create("t");
  h.ask(h.produce("t", h.batch({"old"})), 9);
  const auto waiting = h.send(h.fetch("t", 1, 1000), 11, "reader", 2);
  protocol::DeleteTopicsRequest remove;
  remove.topic_names.push_back("t");
  h.ask(remove, 3);
  ASSERT_NE(h.answer<protocol::FetchResponse>(waiting), nullptr) << "nobody waits for a topic that is gone";
  h.create("t");
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({"new"})), 9)).base_offset, 0);
  h.kill();
  EXPECT_EQ(h.records(h.ask(h.fetch("t", 0), 11)), (std::vector<std::pair<std::int64_t, std::string>>{{0, "new"}}));
}

TEST(Admin, ADeletedTopicStaysGoneWhateverTheCrash) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    CoreHarness h;
    h.create("t");
    h.ask(h.produce("t", h.batch({"old"})), 9);
    protocol::DeleteTopicsRequest remove;
    remove.topics.push_back({.name = "t"});
    h.ask(remove, 6);
    if (seed % 2 == 0) h.create("t");
    h.crash(seed);
    if (seed % 2 == 1) h.create("t");
    EXPECT_TRUE(h.records(h.ask(h.fetch("t", 0), 11)).empty());
  }
}

TEST(Admin, ALongMetadataLogIsRewrittenAndMeansTheSame) {
  CoreHarness h;
  h.create("t", 2);
  protocol::AlterClientQuotasRequest quota;
  quota.entries.push_back({.entity = {{.entity_type = "client-id", .entity_name = "c"}},
                           .ops = {{.key = "producer_byte_rate", .value = 0.0}}});
  for (int i = 1; i <= 1100; ++i) {
    quota.entries[0].ops[0].value = i;
    h.send(quota, 1);
  }
  h.run_syncs();
  EXPECT_EQ(alter(h, kTopicResource, "t", "retention.ms", 0, "77"), ErrorCode::kNone);
  const auto id = h.core->topics().find("t")->id;
  const auto before = h.files.status("data/weir-metadata.log")->size;
  for (int i = 0; i < 2; ++i) {
    h.restart();
    EXPECT_LT(h.files.status("data/weir-metadata.log")->size, before / 10);
    EXPECT_EQ(h.core->topics().find("t")->id, id);
    EXPECT_EQ(setting(h, kTopicResource, "t", "retention.ms"), "77");
    EXPECT_EQ(h.core->quotas().limit("producer_byte_rate", "ANONYMOUS", "c"), 1100.0);
  }
}

TEST(Admin, SettingsTakeEffectAndShowTheirSource) {
  CoreHarness h({"message.max.bytes=3000"});
  h.create("t");
  std::int8_t source = 0;
  EXPECT_EQ(setting(h, kTopicResource, "t", "max.message.bytes", &source), "3000");
  EXPECT_EQ(source, 4);
  EXPECT_EQ(setting(h, kTopicResource, "t", "flush.messages", &source), "1");
  EXPECT_EQ(source, 5);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({std::string(2000, 'x')})), 9)).error_code, ErrorCode::kNone);
  EXPECT_EQ(alter(h, kTopicResource, "t", "max.message.bytes", 0, "1000"), ErrorCode::kNone);
  EXPECT_EQ(setting(h, kTopicResource, "t", "max.message.bytes", &source), "1000");
  EXPECT_EQ(source, 1);
  EXPECT_EQ(h.only(h.ask(h.produce("t", h.batch({std::string(2000, 'x')})), 9)).error_code,
            ErrorCode::kMessageTooLarge);
  EXPECT_EQ(alter(h, kTopicResource, "t", "max.message.bytes", 1, std::nullopt), ErrorCode::kNone);
  EXPECT_EQ(setting(h, kTopicResource, "t", "max.message.bytes"), "3000");
  EXPECT_EQ(alter(h, kTopicResource, "t", "cleanup.policy", 2, "compact"), ErrorCode::kNone);
  EXPECT_EQ(setting(h, kTopicResource, "t", "cleanup.policy"), "delete,compact");
  EXPECT_EQ(alter(h, kTopicResource, "t", "retention.ms", 2, "1"), ErrorCode::kInvalidConfig);
  EXPECT_EQ(alter(h, kTopicResource, "t", "no.such", 0, "1"), ErrorCode::kInvalidConfig);
  EXPECT_EQ(alter(h, kTopicResource, "none", "retention.ms", 0, "1"), ErrorCode::kUnknownTopicOrPartition);
  EXPECT_EQ(alter(h, kBrokerResource, "1", "num.io.threads", 0, "4"), ErrorCode::kInvalidRequest);
  EXPECT_EQ(alter(h, kBrokerResource, "9", "message.max.bytes", 0, "4"), ErrorCode::kInvalidRequest);
}

TEST(Admin, AcknowledgesAtOnceAfterFlushMessagesIsRaised) {
  CoreHarness h;
  h.create("t");
  const auto parked = h.send(h.produce("t", h.batch({"a"})), 9);
  h.syncs.clear();  // a disk that takes its time
  EXPECT_EQ(h.answer<protocol::ProduceResponse>(parked), nullptr);
  protocol::IncrementalAlterConfigsRequest request;
  request.resources.push_back({.resource_type = kTopicResource, .resource_name = "t"});
  request.resources[0].configs.push_back({.name = "flush.messages", .value = "9223372036854775807"});
  h.send(request, 1);
  EXPECT_NE(h.answer<protocol::ProduceResponse>(parked), nullptr);
}

TEST(Admin, CompactedTopicsRefuseRecordsWithoutKey) {
  CoreHarness h;
  h.create("c", 1, {{.name = "cleanup.policy", .value = "compact"}});
  for (const auto codec : {wire::Codec::kNone, wire::Codec::kLz4}) {
    wire::BatchBuilder builder({.codec = codec});
    builder.add(h.now_ms(), std::nullopt, as_bytes("x"));
    EXPECT_EQ(h.only(h.ask(h.produce("c", builder.build()), 9)).error_code, ErrorCode::kInvalidRecord);
  }
  EXPECT_EQ(h.only(h.ask(h.produce("c", h.batch({"keyed"})), 9)).error_code, ErrorCode::kNone);
}

TEST(Admin, RetentionDropsOldSegmentsAndMovesTheStart) {
  CoreHarness h({"log.segment.bytes=200", "log.retention.ms=60000", "log.retention.check.interval.ms=1000"});
  h.create("t");
  for (int i = 0; i < 10; ++i) h.ask(h.produce("t", h.batch({std::string(100, 'x')})), 9);
  h.advance(std::chrono::seconds(120));
  h.run_syncs();
  EXPECT_EQ(h.only(h.ask(h.fetch("t", 0, 0), 11)).error_code, ErrorCode::kOffsetOutOfRange);
  EXPECT_GT(h.only(h.ask(h.fetch("t", 10, 0), 11)).log_start_offset, 5);
}

}  // namespace
}  // namespace weir::broker
