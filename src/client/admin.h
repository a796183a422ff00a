// Admin client: asks any Kafka about its topics, groups, offsets, configs and quotas, over our own protocol code.
//
// Synchronous: a call blocks its thread until the answer is there or its deadline has passed, whichever comes first,
// and a broker that accepts connections but never answers costs exactly that deadline. Calls that concern many groups
// or partitions are sent to all brokers at once, one request for each, so one hung coordinator does not delay the
// answers of the others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::client {

struct AdminSettings {
  std::string bootstrap = "127.0.0.1:9092";  ///< Kafka's bootstrap.servers: "host:port,host:port".
  std::string client_id = "weir-admin";
  Duration timeout = std::chrono::seconds(5);  ///< For each call, connecting included.
  Bytes max_response = 64 * kMiB;              ///< A longer answer is refused and its connection closed.
};

struct BrokerAddress {
  NodeId id;
  std::string host;
  std::uint16_t port = 0;
};

struct ClusterDescription {
  std::string id;  ///< The cluster id; "" when the broker is too old to tell.
  NodeId controller{-1};
  std::vector<BrokerAddress> brokers;
};

struct PartitionDescription {
  PartitionId id;
  NodeId leader{-1};  ///< -1: no leader now.
};
struct TopicDescription {
  std::string name;
  std::string id;  ///< Kafka's text of the topic id, another one for each topic ever made; "": the broker has none.
  bool internal = false;
  std::vector<PartitionDescription> partitions;
};

struct GroupListing {
  std::string group;
  std::string protocol_type;  ///< "consumer" for ordinary consumers.
  std::string state;          ///< "Stable", "Empty", ...; "" when the broker is too old to tell.
  std::string type;           ///< "classic", "consumer", ...; "" when the broker is too old to tell.
};
struct GroupListings {
  std::vector<GroupListing> groups;
  std::vector<Error> failed;  ///< Brokers that did not answer: their groups are missing from the list.
};

struct GroupMember {
  std::string member_id;
  std::string instance_id;  ///< "" for a dynamic member.
  std::string client_id;
  std::string host;
  std::vector<TopicPartition> assigned;  ///< Empty when the group's protocol is not "consumer".
};
struct GroupDescription {
  std::string state;  ///< "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead".
  std::string protocol_type;
  std::string protocol;
  std::vector<GroupMember> members;
};

/// Committed offsets of one group; partitions without a commit are absent.
using Committed = std::map<TopicPartition, Offset>;

/// Which end of a partition list_offsets() asks for.
enum class OffsetSpec : std::int64_t {
  kLatest = -1,    ///< The next offset to be written (the high watermark).
  kEarliest = -2,  ///< The first offset still stored.
};

/// A quota entity: names by type, "" standing for that type's default. {{"client-id", ""}} is the default client.
using QuotaEntity = std::map<std::string, std::string>;
struct QuotaEntry {
  QuotaEntity entity;
  std::map<std::string, double> values;  ///< "producer_byte_rate" and so on.
};
/// One change: a value sets, nothing removes.
using QuotaChanges = std::map<std::string, std::optional<double>>;

struct NewTopic {
  std::string name;
  std::int32_t partitions = -1;          ///< -1: the broker's default.
  std::int16_t replication_factor = -1;  ///< -1: the broker's default.
  std::map<std::string, std::string> configs;
};

struct ConfigValue {
  std::optional<std::string> value;  ///< Nothing for null and for what is sensitive.
  bool is_default = false;
  bool read_only = false;
};

/// Owned by one thread at a time, except interrupt(). Connects when first needed and again after a failure; errors name
/// the address and what was asked.
class Admin {
 public:
  explicit Admin(AdminSettings settings);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

  /// The time each further call may take.
  void set_timeout(Duration timeout);
  /// Any thread: the call that is waiting, and every later one, fails with kClosed. For a quick stop.
  void interrupt();

  Result<ClusterDescription> cluster();
  /// The named topics, or all when `names` is empty. Topics that do not exist are left out; never creates one.
  Result<std::vector<TopicDescription>> topics(const std::vector<std::string>& names = {});
  /// Groups of every broker. Fails only when no broker answered.
  Result<GroupListings> list_groups();
  /// Per group: what it is, or why that could not be told (a coordinator that hangs: kTimeout; no such group of the
  /// classic kind: kNotFound).
  std::map<std::string, Result<GroupDescription>> describe_groups(const std::vector<std::string>& groups);
  /// Per group: every offset it has committed. One request for all groups of a coordinator, where the broker can do
  /// that.
  std::map<std::string, Result<Committed>> committed(const std::vector<std::string>& groups);
  /// Per partition. A deleted topic or partition: kNotFound. One request per leader.
  std::map<TopicPartition, Result<Offset>> list_offsets(const std::vector<TopicPartition>& partitions, OffsetSpec spec);

  /// All entries when `entity` is empty, else exactly that entity's (none: an empty list).
  Result<std::vector<QuotaEntry>> quotas(const QuotaEntity& entity = {});
  Result<void> alter_quotas(const QuotaEntity& entity, const QuotaChanges& changes);

  /// kExists when the topic is there already.
  Result<void> create_topic(const NewTopic& topic);
  Result<std::map<std::string, ConfigValue>> topic_configs(const std::string& topic);
  Result<std::map<std::string, ConfigValue>> broker_configs(NodeId broker);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::client
