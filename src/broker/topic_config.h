// A topic's settings: what was set on the topic, else what the broker says, else Kafka's default.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/broker_config.h"
#include "broker/settings.h"
#include "broker/topics.h"
#include "storage/log.h"

namespace weir::broker {

struct TopicSetting {
  Setting rule;                  ///< Name, type, default (when `broker_name` is empty), range.
  std::string_view broker_name;  ///< The broker setting it falls back to; empty when there is none.
};

std::span<const TopicSetting> topic_settings();
const TopicSetting* find_topic_setting(std::string_view name);

/// Why a topic cannot have this setting, in Kafka's words; nothing when it can.
std::optional<std::string> topic_setting_fault(std::string_view name, std::optional<std::string_view> value);

/// The value in force.
std::string topic_setting_value(const BrokerConfig& broker, const Topic& topic, std::string_view name);

/// What the data path asks for with every request, worked out once.
struct TopicConfig {
  std::int64_t max_message_bytes = 0;
  bool log_append_time = false;
  bool compacted = false;
  std::int64_t timestamp_before_max_ms = 0;
  std::int64_t timestamp_after_max_ms = 0;
  std::int64_t flush_messages = 1;
  std::int32_t min_insync_replicas = 1;
  storage::LogOptions log;

  /// True when an acknowledgement waits for fdatasync.
  bool durable_acks() const { return flush_messages == 1; }
};
TopicConfig topic_config(const BrokerConfig& broker, const Topic& topic);

}  // namespace weir::broker
