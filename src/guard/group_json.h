// A group's lag as JSON, once for all answers that show it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "guard/lag.h"

namespace weir::guard {

/// What has no honest number is null.
template <typename T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
inline nlohmann::json seconds_or_null(const std::optional<Duration>& time) {
  return time ? nlohmann::json(to_seconds(*time)) : nlohmann::json(nullptr);
}

/// Everything but its partitions.
inline nlohmann::json group_to_json(const std::string& name, const GroupLag& group) {
  return {{"group", name},
          {"state", group.state},
          {"members", or_null(group.members)},
          {"lag", or_null(group.records)},
          {"lag_seconds", seconds_or_null(group.time)},
          {"consumed_per_s", or_null(group.consumed_per_s)},
          {"produced_per_s", or_null(group.produced_per_s)},
          {"uncommitted_partitions", group.uncommitted},
          {"unmeasured_partitions", group.unmeasured},
          {"stopped", group.stopped()},
          {"stale", group.stale},
          {"error", group.error}};
}

}  // namespace weir::guard
