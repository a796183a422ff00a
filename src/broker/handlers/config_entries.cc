#include "broker/handlers/config_entries.h"

#include "broker/topic_config.h"

namespace weir::broker {
namespace {

using Type = BrokerConfig::Type;

std::int8_t type_code(Type type) {
  switch (type) {
    case Type::kBoolean: return 1;
    case Type::kString: return 2;
    case Type::kInt: return 3;
    case Type::kShort: return 4;
    case Type::kLong: return 5;
    case Type::kDouble: return 6;
    case Type::kList: return 7;
    case Type::kPassword: return 9;
  }
  return 0;
}

std::optional<std::string> or_null(const std::string& value) {
  return value.empty() ? std::nullopt : std::optional(value);
}

std::vector<ConfigEntry::Synonym> synonyms_of(const BrokerConfig::Described& setting) {
  std::vector<ConfigEntry::Synonym> synonyms;
  const std::string name(setting.name);
  if (setting.dynamic_value) synonyms.push_back({name, setting.dynamic_value, kDynamicBroker});
  if (setting.static_value) synonyms.push_back({name, setting.static_value, kStaticBroker});
  if (!setting.default_value.empty()) synonyms.push_back({name, setting.default_value, kDefaultConfig});
  return synonyms;
}

std::int8_t source_of(BrokerConfig::Source source) {
  switch (source) {
    case BrokerConfig::Source::kDynamic: return kDynamicBroker;
    case BrokerConfig::Source::kStatic: return kStaticBroker;
    case BrokerConfig::Source::kDefault: break;
  }
  return kDefaultConfig;
}

}  // namespace

std::vector<ConfigEntry> broker_entries(const BrokerConfig& config) {
  std::vector<ConfigEntry> entries;
  for (const auto& setting : config.describe()) {
    entries.push_back({.name = std::string(setting.name),
                       .value = or_null(setting.value),
                       .source = source_of(setting.source),
                       .type = type_code(setting.type),
                       .read_only = setting.read_only,
                       .synonyms = synonyms_of(setting),
                       .documentation = std::string(setting.documentation)});
  }
  return entries;
}

std::vector<ConfigEntry> topic_entries(const BrokerConfig& config, const Topic& topic) {
  std::vector<ConfigEntry> entries;
  for (const TopicSetting& setting : topic_settings()) {
    const std::string name(setting.rule.name);
    ConfigEntry entry{.name = name,
                      .value = topic_setting_value(config, topic, name),
                      .type = type_code(setting.rule.type),
                      .documentation = std::string(setting.rule.documentation)};
    if (!setting.broker_name.empty()) {
      const auto broker = *config.describe(setting.broker_name);
      entry.source = source_of(broker.source);
      entry.synonyms = synonyms_of(broker);
    } else {
      entry.synonyms.push_back({name, std::string(setting.rule.default_value), kDefaultConfig});
    }
    if (const auto it = topic.configs.find(name); it != topic.configs.end()) {
      entry.source = kDynamicTopic;
      entry.synonyms.insert(entry.synonyms.begin(), {name, it->second, kDynamicTopic});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace weir::broker
