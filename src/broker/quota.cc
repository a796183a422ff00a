#include "broker/quota.h"

#include <algorithm>
#include <limits>

namespace weir::broker {
namespace {

// Until clients prove who they are, all are Kafka's anonymous user.
constexpr std::string_view kUser = "ANONYMOUS";
constexpr std::array<std::string_view, 2> kKeys = {"producer_byte_rate", "consumer_byte_rate"};
constexpr Duration kSweepEvery = std::chrono::minutes(1);

}  // namespace

Quotas::Quotas(const BrokerConfig& config) : config_(config) {}

void Quotas::replay(const QuotaRecord& record) {
  auto& values = quotas_[record.entity];
  if (record.value) {
    values.insert_or_assign(record.key, *record.value);
  } else {
    values.erase(record.key);
  }
  if (values.empty()) quotas_.erase(record.entity);
  for (const Kind kind : {kProduce, kFetch}) {
    quotas_of_kind_[kind] = static_cast<std::size_t>(
        std::ranges::count_if(quotas_, [&](const auto& e) { return e.second.contains(kKeys[kind]); }));
  }
}

std::optional<double> Quotas::broker_default(Kind kind) const {
  const std::int64_t value = kind == kProduce ? config_.quota_producer_default : config_.quota_consumer_default;
  if (value == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> Quotas::value_of(const QuotaEntity& entity, std::string_view key) const {
  const auto found = quotas_.find(entity);
  if (found == quotas_.end()) return std::nullopt;
  const auto value = found->second.find(key);
  return value == found->second.end() ? std::nullopt : std::optional(value->second);
}

Quotas::InForce Quotas::in_force(Kind kind, std::string_view user_name, std::string_view client_name) const {
  const std::string user(user_name);
  const std::string client(client_name);
  using Name = std::optional<std::string>;
  const auto both = [](Name c, Name u) { return QuotaEntity{{"client-id", std::move(c)}, {"user", std::move(u)}}; };
  const auto one = [](const char* type, Name name) { return QuotaEntity{{type, std::move(name)}}; };
  struct Candidate {
    QuotaEntity entity;
    Owner owner;
  };
  if (quotas_of_kind_[kind] > 0) {
    const Candidate candidates[] = {{both(client, user), {user, client}},     {both({}, user), {user, client}},
                                    {one("user", user), {user, ""}},          {both(client, {}), {user, client}},
                                    {both({}, {}), {user, client}},           {one("user", {}), {user, ""}},
                                    {one("client-id", client), {"", client}}, {one("client-id", {}), {"", client}}};
    for (const Candidate& candidate : candidates) {
      if (const auto value = value_of(candidate.entity, kKeys[kind])) return {candidate.owner, value};
    }
  }
  return {{"", client}, broker_default(kind)};
}

std::optional<double> Quotas::limit(std::string_view key, std::string_view user, std::string_view client_id) const {
  return in_force(key == kKeys[kFetch] ? kFetch : kProduce, user, client_id).limit;
}

Duration Quotas::count(Kind kind, Now now, const Request& request, double bytes) {
  // As in Kafka nothing is measured until somebody has a quota; from then on everybody is, so that a new quota finds
  // the last seconds already counted.
  if (quotas_of_kind_[kind] == 0 && !broker_default(kind)) {
    rates_[kind].clear();
    return {};
  }
  forget_idle(now.mono);
  const InForce rule = in_force(kind, kUser, request.client_id);
  auto [rate, added] = rates_[kind].try_emplace(rule.owner, config_.quota_window_num,
                                                Duration(std::chrono::seconds(config_.quota_window_size_seconds)));
  rate->second.record(now.mono, bytes);
  return rule.limit ? rate->second.delay(now.mono, *rule.limit) : Duration{};
}

Duration Quotas::produced(Now now, const Request& request, Bytes bytes) {
  return count(kProduce, now, request, static_cast<double>(bytes));
}
Duration Quotas::fetched(Now now, const Request& request, Bytes bytes) {
  return count(kFetch, now, request, static_cast<double>(bytes));
}
void Quotas::unfetched(Now now, const Request& request, Bytes bytes) {
  count(kFetch, now, request, -static_cast<double>(bytes));
}

Bytes Quotas::max_fetch_bytes(const Request& request) const {
  constexpr auto kNoLimit = std::numeric_limits<Bytes>::max();
  const auto rule = in_force(kFetch, kUser, request.client_id).limit;
  if (!rule) return kNoLimit;
  const double most = *rule * std::max(config_.quota_window_num - 1, 1) * config_.quota_window_size_seconds;
  return most >= static_cast<double>(std::numeric_limits<std::int64_t>::max()) ? kNoLimit : static_cast<Bytes>(most);
}

void Quotas::forget_idle(MonoTime now) {
  if (now < next_sweep_) return;
  next_sweep_ = now + kSweepEvery;
  for (auto& rates : rates_) {
    std::erase_if(rates, [&](const auto& entry) { return entry.second.idle(now); });
  }
}

}  // namespace weir::broker
