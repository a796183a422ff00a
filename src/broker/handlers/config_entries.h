// Settings as DescribeConfigs and CreateTopics show them: value in force, source, and what it would be otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "broker/broker_config.h"
#include "broker/topics.h"

namespace weir::broker {

/// Kafka's ConfigSource.
enum ConfigSource : std::int8_t {
  kDynamicTopic = 1,
  kDynamicBroker = 2,
  kDynamicDefaultBroker = 3,
  kStaticBroker = 4,
  kDefaultConfig = 5
};

struct ConfigEntry {
  struct Synonym {
    std::string name;
    std::optional<std::string> value;
    std::int8_t source = kDefaultConfig;
  };
  std::string name;
  std::optional<std::string> value;
  std::int8_t source = kDefaultConfig;
  std::int8_t type = 0;  ///< Kafka's ConfigType.
  bool read_only = false;
  std::vector<Synonym> synonyms;  ///< Most specific first; the first one is in force.
  std::string documentation;
};

std::vector<ConfigEntry> broker_entries(const BrokerConfig& config);
std::vector<ConfigEntry> topic_entries(const BrokerConfig& config, const Topic& topic);

}  // namespace weir::broker
