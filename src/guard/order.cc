#include "guard/order.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/units.h"

namespace weir::guard {
namespace {

using nlohmann::json;
using Fields = std::map<std::string, std::string>;

constexpr double kMostRate = 1e15;
constexpr std::size_t kLongestReason = 500;

Result<Fields> read_fields(const http::Request& request) {
  Fields fields = request.query;
  if (request.body.empty()) return fields;
  const json body = json::parse(request.body, nullptr, false);
  if (!body.is_object()) return fail(ErrorKind::kInvalid, "the body must be a JSON object");
  const auto take = [&](const json& object) -> Result<void> {
    for (const auto& [name, value] : object.items()) {
      if (name == "scope" && value.is_object()) continue;
      if (name == "scope") return fail(ErrorKind::kInvalid, "scope must be an object: topic, partition, client_id");
      if (!value.is_string() && !value.is_number()) {
        return fail(ErrorKind::kInvalid, fmt::format("{} must be a text or a number", name));
      }
      fields[name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return {};
  };
  if (auto done = take(body); !done) return tl::unexpected(done.error());
  if (const auto scope = body.find("scope"); scope != body.end() && scope->is_object()) {
    if (auto done = take(*scope); !done) return tl::unexpected(done.error());
  }
  return fields;
}

Result<double> parse_rate(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !(value > 0) || value > kMostRate) {
    return fail(ErrorKind::kInvalid,
                fmt::format("value must be a number above 0 and at most {}, not \"{}\"; to stop, use /api/pause",
                            kMostRate, text));
  }
  return value;
}

}  // namespace

Result<Order> parse_order(OrderKind kind, const http::Request& request, const OrderLimits& limits) {
  auto fields = read_fields(request);
  if (!fields) return tl::unexpected(fields.error());
  std::set<std::string> known{"topic", "partition", "client_id"};
  if (kind != OrderKind::kResume) known.insert({"ttl", "reason"});
  if (kind == OrderKind::kLimit) known.insert({"value", "unit"});
  for (const auto& [name, value] : *fields) {
    if (!known.contains(name)) return fail(ErrorKind::kInvalid, fmt::format("{} is not known here", name));
  }
  for (const char* name : {"topic", "client_id"}) {
    // A script whose variable is empty must not stop everything.
    if (const auto field = fields->find(name); field != fields->end() && field->second.empty())
      return fail(ErrorKind::kInvalid, fmt::format("{0} is empty; leave it out to mean every {0}", name));
  }
  Order order{.ttl = limits.default_ttl, .reason = (*fields)["reason"]};
  if (order.reason.size() > kLongestReason)
    return fail(ErrorKind::kInvalid, fmt::format("reason is longer than {} bytes", kLongestReason));
  order.scope.client_id = (*fields)["client_id"];
  order.scope.topic = (*fields)["topic"];
  if (const auto partition = fields->find("partition"); partition != fields->end()) {
    auto number = parse_integer(partition->second, 0, INT32_MAX);
    if (!number) return fail(ErrorKind::kInvalid, "partition: " + number.error().message);
    if (order.scope.topic.empty()) return fail(ErrorKind::kInvalid, "a partition needs its topic");
    order.scope.partition = PartitionId(static_cast<std::int32_t>(*number));
  }
  if (const auto ttl = fields->find("ttl"); ttl != fields->end()) {
    auto duration = parse_duration(ttl->second, std::chrono::seconds(1));
    if (!duration) return fail(ErrorKind::kInvalid, "ttl: " + duration.error().message);
    if (*duration <= Duration::zero() || *duration > limits.max_ttl) {
      return fail(ErrorKind::kInvalid,
                  fmt::format("ttl must be above 0 and at most {}", format_duration(limits.max_ttl)));
    }
    order.ttl = *duration;
  }
  if (kind == OrderKind::kLimit) {
    auto value = parse_rate((*fields)["value"]);
    if (!value) return tl::unexpected(value.error());
    const std::string& unit = (*fields)["unit"];
    if (unit.empty() || unit == "records/s") {
      order.records_per_second = *value;
    } else if (unit == "bytes/s") {
      order.bytes_per_second = *value;
    } else {
      return fail(ErrorKind::kInvalid, fmt::format("unit must be records/s or bytes/s, not \"{}\"", unit));
    }
  }
  return order;
}

Directive to_directive(OrderKind kind, const Order& order, MonoTime now) {
  const double value = order.records_per_second.value_or(order.bytes_per_second.value_or(0));
  return {.scope = order.scope,
          .pause = kind == OrderKind::kPause,
          .records_per_second = order.records_per_second,
          .bytes_per_second = order.bytes_per_second,
          .reason = order.reason.empty() ? "an operator asked" : order.reason,
          .signal = {SignalKind::kOperator, value},
          .expires = now + order.ttl};
}

}  // namespace weir::guard
