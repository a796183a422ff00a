// The table of broker settings: one row per name of Kafka's that has an effect here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "broker/broker_config.h"

namespace weir::broker {

struct Setting {
  using Member = std::variant<std::monostate, bool BrokerConfig::*, std::int32_t BrokerConfig::*,
                              std::int64_t BrokerConfig::*, std::string BrokerConfig::*>;

  std::string_view name;
  BrokerConfig::Type type;
  std::string_view default_value;  ///< Empty: none; another setting or the code decides.
  Member member;         ///< What the value in force is copied to; nothing when BrokerConfig::refresh derives it.
  bool dynamic = false;  ///< May be changed while running.
  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;
  std::string_view choices = {};  ///< "a|b|c" for a string that must be one of these.
  std::string_view documentation = {};
};

std::span<const Setting> settings();
const Setting* find_setting(std::string_view name);
/// Why Kafka's setting `name` has no effect on a single node of ours; empty when it is not a name we know.
std::string_view noted_setting(std::string_view name);

/// Checks type, range and choices. The message does not name the setting; the caller does.
Result<void> check_value(const Setting& setting, std::string_view value);

/// Whole-text numbers and Kafka's booleans ("true", "false", any case).
Result<std::int64_t> parse_integer(std::string_view text);
Result<bool> parse_boolean(std::string_view text);

}  // namespace weir::broker
