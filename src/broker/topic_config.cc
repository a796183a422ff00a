#include "broker/topic_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::broker {
namespace {

using Type = BrokerConfig::Type;
constexpr std::int64_t kMaxInt = INT32_MAX;
constexpr std::string_view kOffsetsTopic = "__consumer_offsets";

constexpr Setting rule(std::string_view name, Type type, std::string_view default_value, std::int64_t min,
                       std::int64_t max, std::string_view documentation, std::string_view choices = {}) {
  return {name, type, default_value, {}, true, min, max, choices, documentation};
}

const TopicSetting kTopicSettings[] = {
    {rule("cleanup.policy", Type::kList, "", 0, 0, "What happens to old segments.",
          "delete|compact|compact,delete|delete,compact"),
     "log.cleanup.policy"},
    {rule("compression.type", Type::kString, "", 0, 0, "Batches are stored as received.",
          "producer|uncompressed|gzip|snappy|lz4|zstd"),
     "compression.type"},
    {rule("delete.retention.ms", Type::kLong, "86400000", 0, INT64_MAX, "No effect: there is no compaction yet."), ""},
    {rule("file.delete.delay.ms", Type::kLong, "", 0, INT64_MAX, "How long removed files stay."),
     "log.segment.delete.delay.ms"},
    {rule("flush.messages", Type::kLong, "", 1, INT64_MAX, "1: acknowledged means fsynced."),
     "log.flush.interval.messages"},
    {rule("flush.ms", Type::kLong, "9223372036854775807", 0, INT64_MAX, "No effect: see flush.messages."), ""},
    {rule("index.interval.bytes", Type::kInt, "", 0, kMaxInt, "Bytes between index entries."),
     "log.index.interval.bytes"},
    {rule("max.compaction.lag.ms", Type::kLong, "9223372036854775807", 1, INT64_MAX,
          "No effect: there is no compaction yet."),
     ""},
    {rule("max.message.bytes", Type::kInt, "", 0, kMaxInt, "The largest record batch."), "message.max.bytes"},
    {rule("message.timestamp.after.max.ms", Type::kLong, "", 0, INT64_MAX,
          "How far a CreateTime may lie in the future."),
     "log.message.timestamp.after.max.ms"},
    {rule("message.timestamp.before.max.ms", Type::kLong, "", 0, INT64_MAX,
          "How far a CreateTime may lie in the past."),
     "log.message.timestamp.before.max.ms"},
    {rule("message.timestamp.type", Type::kString, "", 0, 0, "Whose clock a record's timestamp shows.",
          "CreateTime|LogAppendTime"),
     "log.message.timestamp.type"},
    {rule("min.cleanable.dirty.ratio", Type::kDouble, "0.5", 0, 0, "No effect: there is no compaction yet."), ""},
    {rule("min.compaction.lag.ms", Type::kLong, "0", 0, INT64_MAX, "No effect: there is no compaction yet."), ""},
    {rule("min.insync.replicas", Type::kInt, "", 1, kMaxInt,
          "Copies that must have a record before acks=all is answered."),
     "min.insync.replicas"},
    {rule("preallocate", Type::kBoolean, "false", 0, 0, "No effect: segments are not preallocated."), ""},
    {rule("retention.bytes", Type::kLong, "", -1, INT64_MAX, "A partition above this size loses its oldest segments."),
     "log.retention.bytes"},
    {rule("retention.ms", Type::kLong, "", -1, INT64_MAX, "Segments older than this are deleted."), "log.retention.ms"},
    {rule("segment.bytes", Type::kInt, "", 1048576, kMaxInt, "A segment is rolled at this size."), "log.segment.bytes"},
    {rule("segment.index.bytes", Type::kInt, "", 4, kMaxInt, "The largest index."), "log.index.size.max.bytes"},
    {rule("segment.jitter.ms", Type::kLong, "0", 0, INT64_MAX, "No effect: segments roll at their age."), ""},
    {rule("segment.ms", Type::kLong, "", 1, INT64_MAX, "A segment is rolled at this age."), "log.roll.ms"},
    {rule("unclean.leader.election.enable", Type::kBoolean, "false", 0, 0, "No effect: there is one copy."), ""},
};

}  // namespace

std::span<const TopicSetting> topic_settings() { return kTopicSettings; }

const TopicSetting* find_topic_setting(std::string_view name) {
  const auto* it = std::ranges::find(kTopicSettings, name, [](const TopicSetting& s) { return s.rule.name; });
  return it == std::end(kTopicSettings) ? nullptr : it;
}

std::optional<std::string> topic_setting_fault(std::string_view name, std::optional<std::string_view> value) {
  const TopicSetting* setting = find_topic_setting(name);
  if (setting == nullptr) return fmt::format("Unknown topic config name: {}", name);
  if (!value) return fmt::format("Null value not supported for topic configs: {}", name);
  if (auto ok = check_value(setting->rule, *value); !ok) {
    return fmt::format("Invalid value {} for configuration {}: {}", *value, name, ok.error().message);
  }
  return std::nullopt;
}

std::string topic_setting_value(const BrokerConfig& broker, const Topic& topic, std::string_view name) {
  if (const auto it = topic.configs.find(std::string(name)); it != topic.configs.end()) return it->second;
  const TopicSetting* setting = find_topic_setting(name);
  if (setting->broker_name.empty()) return std::string(setting->rule.default_value);
  return broker.describe(setting->broker_name)->value;
}

TopicConfig topic_config(const BrokerConfig& broker, const Topic& topic) {
  const auto text = [&](std::string_view name) { return topic_setting_value(broker, topic, name); };
  const auto number = [&](std::string_view name) { return parse_integer(text(name)).value(); };
  const auto span = [](std::int64_t ms) -> Duration {
    constexpr std::int64_t kForever = Duration::max().count() / 1000000;
    return std::chrono::milliseconds(std::min(ms, kForever));
  };
  TopicConfig config;
  config.max_message_bytes = number("max.message.bytes");
  config.log_append_time = text("message.timestamp.type") == "LogAppendTime";
  config.compacted = text("cleanup.policy").find("compact") != std::string::npos;
  config.timestamp_before_max_ms = number("message.timestamp.before.max.ms");
  config.timestamp_after_max_ms = number("message.timestamp.after.max.ms");
  config.flush_messages = number("flush.messages");
  // Written for a cluster as the replication factor is, and clamped with it: nothing could ever be produced otherwise.
  if (!broker.replication_factor_clamp)
    config.min_insync_replicas = static_cast<std::int32_t>(number("min.insync.replicas"));
  config.log.segment_bytes = static_cast<Bytes>(number("segment.bytes"));
  config.log.segment_age = span(number("segment.ms"));
  config.log.index_interval = static_cast<Bytes>(number("index.interval.bytes"));
  config.log.index_bytes = static_cast<Bytes>(number("segment.index.bytes"));
  config.log.producer_expiry = span(broker.producer_id_expiration_ms);
  // A compacted topic keeps everything until there is a cleaner: dropping the newest value of a key would lose it.
  const bool deletes = !config.compacted || text("cleanup.policy").find("delete") != std::string::npos;
  const auto retention_ms = number("retention.ms");
  const auto retention_bytes = number("retention.bytes");
  config.log.retention_time = deletes && retention_ms >= 0 ? std::optional(span(retention_ms)) : std::nullopt;
  config.log.retention_bytes =
      deletes && retention_bytes >= 0 ? std::optional(static_cast<Bytes>(retention_bytes)) : std::nullopt;
  if (topic.name == kOffsetsTopic && !topic.configs.contains("segment.bytes")) {
    config.log.segment_bytes = static_cast<Bytes>(broker.offsets_topic_segment_bytes);
  }
  return config;
}

}  // namespace weir::broker
