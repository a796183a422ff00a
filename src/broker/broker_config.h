// The broker's settings under Kafka's names: server.properties, `--set name=value`, and what AlterConfigs changed.
//
// One table (broker_config.cc) says for each name its type, default, range and the member it fills; parsing, range
// checks and DescribeConfigs read that table. Owned by the core loop once the broker runs; before that by whoever
// builds it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::broker {

/// Kafka's page-cache value of log.flush.interval.messages: never fsync before answering.
inline constexpr std::int64_t kNeverFlush = 9223372036854775807;

struct HostPort {
  std::string host;
  std::uint16_t port = 0;  ///< 0 lets the system choose.
  bool operator==(const HostPort&) const = default;
};

/// "127.0.0.1:9092", "[::1]:9092", ":9092", "PLAINTEXT://host:port". An empty host is kept empty (every address).
Result<HostPort> parse_host_port(std::string_view text);

class BrokerConfig {
 public:
  /// Every setting at its default.
  BrokerConfig();

  /// Reads a server.properties text; errors name `file`:line. Later names win.
  Result<void> parse(std::string_view text, std::string_view file);
  Result<void> load(const std::string& path);
  /// One `name=value` of the command line.
  Result<void> set(std::string_view assignment);
  /// The same from elsewhere: messages begin with `where`, like "weir.yaml:12".
  Result<void> set(std::string_view name, std::string_view value, std::string_view where) {
    return assign(name, value, where);
  }
  /// Checks what spans settings (replication factors, listeners) and derives the rest. Call once, after the last set().
  Result<void> finish();
  /// Things to tell the operator once, one line each: settings without effect here, unknown names, clamped factors.
  const std::vector<std::string>& notices() const { return notices_; }

  // ---- AlterConfigs -------------------------------------------------------------------------------------------------

  /// Sets or (no value) unsets a setting while running. kNotFound for a name that is not a setting, kUnsupported for
  /// one that needs a restart, kInvalid for a bad value.
  Result<void> alter(std::string_view name, std::optional<std::string_view> value);
  /// The same checks without the change.
  Result<void> check_alter(std::string_view name, std::optional<std::string_view> value) const;

  /// What alter() has set.
  const std::map<std::string, std::string, std::less<>>& dynamic() const { return dynamic_; }

  // ---- DescribeConfigs ----------------------------------------------------------------------------------------------

  enum class Type { kBoolean, kString, kInt, kShort, kLong, kDouble, kList, kPassword };
  enum class Source { kDefault, kStatic, kDynamic };
  struct Described {
    std::string_view name;
    std::string value;  ///< In force.
    Type type = Type::kString;
    Source source = Source::kDefault;
    bool read_only = true;
    std::string default_value;
    std::optional<std::string> static_value;
    std::optional<std::string> dynamic_value;
    std::string_view documentation;
  };
  std::vector<Described> describe() const;
  std::optional<Described> describe(std::string_view name) const;

  // ---- In force -----------------------------------------------------------------------------------------------------

  std::int32_t node_id = 0;
  std::vector<HostPort> listeners;     ///< Where to listen; the first is used.
  std::optional<HostPort> advertised;  ///< What Metadata says, when it is not the bound address.
  std::string log_dir;

  std::int32_t num_network_threads = 0;  ///< io loops. 1: shares the core loop's thread.
  std::int32_t num_io_threads = 0;       ///< log loops
  std::int32_t queued_max_requests = 0;
  std::int64_t queued_max_request_bytes = 0;
  std::int32_t socket_request_max_bytes = 0;
  std::int64_t connections_max_idle_ms = 0;
  std::int32_t max_connections = 0;

  bool auto_create_topics_enable = false;
  bool delete_topic_enable = false;
  std::int32_t num_partitions = 0;
  std::int32_t default_replication_factor = 0;
  std::int32_t min_insync_replicas = 0;
  bool replication_factor_clamp = false;  ///< weir.replication.factor.clamp

  std::int32_t message_max_bytes = 0;
  std::string compression_type;
  std::string log_cleanup_policy;
  std::int32_t log_segment_bytes = 0;
  std::int64_t log_roll_ms = 0;
  std::int64_t log_retention_ms = 0;
  std::int64_t log_retention_bytes = 0;
  std::int64_t log_retention_check_interval_ms = 0;
  std::int64_t log_segment_delete_delay_ms = 0;
  std::int64_t log_flush_interval_messages = 0;
  std::int32_t log_index_interval_bytes = 0;
  std::int32_t log_index_size_max_bytes = 0;
  std::string log_message_timestamp_type;
  std::int64_t log_message_timestamp_before_max_ms = 0;
  std::int64_t log_message_timestamp_after_max_ms = 0;
  std::int32_t producer_id_expiration_ms = 0;
  std::int32_t fetch_max_bytes = 0;

  std::int32_t offsets_topic_num_partitions = 0;
  std::int32_t offsets_topic_replication_factor = 0;
  std::int32_t offsets_topic_segment_bytes = 0;
  std::int32_t offsets_retention_minutes = 0;
  std::int64_t offsets_retention_check_interval_ms = 0;
  std::int32_t offset_metadata_max_bytes = 0;
  std::int32_t group_initial_rebalance_delay_ms = 0;
  std::int32_t group_min_session_timeout_ms = 0;
  std::int32_t group_max_session_timeout_ms = 0;
  std::int32_t group_max_size = 0;

  std::int64_t quota_producer_default = 0;  ///< Bytes/s per client-id; the largest value means no quota.
  std::int64_t quota_consumer_default = 0;
  std::int32_t quota_window_num = 0;
  std::int32_t quota_window_size_seconds = 0;

 private:
  Result<void> assign(std::string_view name, std::string_view value, std::string_view where);
  void refresh();

  std::map<std::string, std::string, std::less<>> static_;
  std::map<std::string, std::string, std::less<>> dynamic_;
  std::vector<std::string> notices_;
};

}  // namespace weir::broker
