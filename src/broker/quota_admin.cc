#include "broker/quota_admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace weir::broker {

using protocol::AlterClientQuotasRequest;
using protocol::AlterClientQuotasResponse;
using protocol::DescribeClientQuotasRequest;
using protocol::DescribeClientQuotasResponse;
using protocol::ErrorCode;

namespace {

constexpr std::string_view kTypes[] = {"client-id", "ip", "user"};
bool known_type(std::string_view type) { return std::ranges::find(kTypes, type) != std::end(kTypes); }

// Kafka's quotas: whom they may be set for, and what numbers they take.
struct QuotaKey {
  std::string_view name;
  bool of_ip;
  double most;  // above zero: whole numbers up to here
};
constexpr double kLongMax = 9223372036854775807.0;
constexpr QuotaKey kKeys[] = {{"producer_byte_rate", false, kLongMax},
                              {"consumer_byte_rate", false, kLongMax},
                              {"request_percentage", false, 0},
                              {"controller_mutation_rate", false, 0},
                              {"connection_creation_rate", true, 2147483647.0}};

std::optional<std::string> entity_fault(const QuotaEntity& entity) {
  if (entity.empty()) return "Invalid empty client quota entity.";
  bool ip = false;
  for (std::size_t i = 0; i < entity.size(); ++i) {
    const auto& [type, name] = entity[i];
    if (!known_type(type)) return fmt::format("Unhandled client quota entity type: {}", type);
    if (i > 0 && entity[i - 1].first == type) return fmt::format("Duplicate client quota entity type: {}", type);
    if (name && name->empty()) return fmt::format("Empty {} unsupported", type);
    ip = ip || type == "ip";
  }
  if (ip && entity.size() > 1) {
    return "Invalid quota entity combination, IP entity should not be combined with User or ClientId";
  }
  return std::nullopt;
}

std::optional<std::string> value_fault(const QuotaEntity& entity, const AlterClientQuotasRequest::OpData& op) {
  const bool of_ip = entity.front().first == "ip";
  const auto* key = std::ranges::find(kKeys, op.key, &QuotaKey::name);
  if (key == std::end(kKeys) || key->of_ip != of_ip) return fmt::format("Invalid configuration key {}", op.key);
  if (op.remove) return std::nullopt;
  if (!(op.value > 0) || std::isinf(op.value)) return fmt::format("Quota {} must be greater than 0", op.key);
  if (key->most == 0) return std::nullopt;
  if (op.value > key->most) return fmt::format("Proposed value for {} is too large", op.key);
  if (std::fmod(op.value, 1.0) > 1e-6) return fmt::format("{} cannot be a fractional value.", op.key);
  return std::nullopt;
}

}  // namespace

DescribeClientQuotasResponse describe_quotas(const Quotas& quotas, const DescribeClientQuotasRequest& request) {
  enum : std::int8_t { kExact = 0, kDefault = 1, kAny = 2 };
  const auto refuse = [](ErrorCode code, std::string why) {
    return DescribeClientQuotasResponse{.error_code = code, .error_message = std::move(why)};
  };
  std::set<std::string_view> types;
  for (const auto& c : request.components) {
    if (c.entity_type.empty()) return refuse(ErrorCode::kInvalidRequest, "Invalid empty entity type.");
    if (!known_type(c.entity_type)) {
      return refuse(ErrorCode::kUnsupportedVersion, fmt::format("Unsupported entity type {}", c.entity_type));
    }
    if (!types.insert(c.entity_type).second) {
      return refuse(ErrorCode::kInvalidRequest,
                    fmt::format("Entity type {} cannot appear more than once in the filter.", c.entity_type));
    }
    if (c.match_type < kExact || c.match_type > kAny) {
      return refuse(ErrorCode::kInvalidRequest, fmt::format("Unknown match type {}", c.match_type));
    }
    if ((c.match_type == kExact) != c.match.has_value()) {
      return refuse(ErrorCode::kInvalidRequest,
                    fmt::format("Entity type {}: an exact match needs a name, other matches take none", c.entity_type));
    }
  }
  if (types.contains("ip") && types.size() > 1) {
    return refuse(ErrorCode::kInvalidRequest, "Invalid entity filter component combination.");
  }

  DescribeClientQuotasResponse response;
  auto& entries = response.entries.emplace();
  for (const auto& [entity, values] : quotas.all()) {
    const bool passes = std::ranges::all_of(request.components, [&](const auto& c) {
      const auto part = std::ranges::find(entity, c.entity_type, [](const auto& p) { return p.first; });
      return part != entity.end() && (c.match_type == kAny || part->second == c.match);
    });
    const bool exceeds = std::ranges::any_of(entity, [&](const auto& part) { return !types.contains(part.first); });
    if (!passes || (request.strict && exceeds)) continue;
    auto& entry = entries.emplace_back();
    for (const auto& [type, name] : entity) entry.entity.push_back({type, name});
    for (const auto& [key, value] : values) entry.values.push_back({key, value});
  }
  return response;
}

QuotaDecision alter_quotas(const Quotas& quotas, const AlterClientQuotasRequest& request) {
  QuotaDecision decision;
  for (const auto& entry : request.entries) {
    auto& answer = decision.response.entries.emplace_back();
    QuotaEntity entity;
    for (const auto& part : entry.entity) {
      entity.emplace_back(part.entity_type, part.entity_name);
      answer.entity.push_back({part.entity_type, part.entity_name});
    }
    std::ranges::sort(entity);
    auto fault = entity_fault(entity);
    for (auto op = entry.ops.begin(); !fault && op != entry.ops.end(); ++op) fault = value_fault(entity, *op);
    if (fault) {
      answer.error_code = ErrorCode::kInvalidRequest;
      answer.error_message = std::move(fault);
      continue;
    }
    if (request.validate_only) continue;
    const auto known = quotas.all().find(entity);
    for (const auto& op : entry.ops) {
      const bool absent = known == quotas.all().end() || !known->second.contains(op.key);
      if (op.remove && absent) continue;
      decision.records.push_back(
          QuotaRecord{entity, op.key, op.remove ? std::nullopt : std::optional<double>(op.value)});
    }
  }
  return decision;
}

}  // namespace weir::broker
