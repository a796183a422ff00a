// The guard's HTTP routes. Everything here runs on the server's thread, except status(), which the measuring thread
// uses too.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "guard/group_json.h"
#include "guard/guard_state.h"
#include "guard/report.h"
#include "http/directives.h"

namespace weir::guard {
namespace {

using nlohmann::json;

constexpr std::size_t kShownDecisions = 50;

http::Response answer(const json& body, int status = 200) {
  return {.status = status, .body = body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"};
}

json limit_to_json(const LimitState& limit) {
  return {{"limited_by", to_string(limit.limited_by)},
          {"limit", limit.limit},
          {"signal", {{"kind", to_string(limit.signal.kind)}, {"value", limit.signal.value}}},
          {"why", limit.why}};
}

json pipeline_to_json(const PipelineStatus& p) {
  json out{{"read", p.read},
           {"acked", p.acked},
           {"stored", p.stored},
           {"read_per_s", p.read_per_s},
           {"acked_per_s", p.acked_per_s},
           {"stored_per_s", p.stored_per_s},
           {"lag", or_null(p.lag)},
           {"lag_seconds", or_null(p.lag_seconds)},
           {"limit", limit_to_json(p.limit)},
           {"shed", p.shed},
           {"rejected", p.rejected}};
  out["latency_p50_ms"] = or_null(p.latency_p50_ms);
  out["latency_p99_ms"] = or_null(p.latency_p99_ms);
  return out;
}

json decision_to_json(const flow::Decision& decision, Now now) {
  return {{"number", decision.number},
          {"when_ms", to_unix_ms(now.wall - (now.mono - decision.when))},
          {"law", decision.law},
          {"scope", to_string(decision.scope)},
          {"signal", {{"kind", to_string(decision.signal.kind)}, {"value", decision.signal.value}}},
          {"limit", or_null(decision.limit)},
          {"why", decision.why},
          {"until_ms", decision.until ? json(to_unix_ms(now.wall + (*decision.until - now.mono))) : json(nullptr)}};
}

}  // namespace

void Guard::State::add_routes() {
  using http::Request;
  server_.route("GET", "/", [](const Request&) {
    return http::Response{.content_type = "text/html; charset=utf-8",
                          .body = page(),
                          .headers = {{"Content-Security-Policy",
                                       "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                                       "connect-src 'self'; img-src data:; frame-ancestors 'none'"}}};
  });
  server_.route("GET", "/api/status", [this](const Request&) { return http::Response{.body = status() + "\n"}; });
  server_.route("GET", "/api/lag", [this](const Request& request) {
    const auto only = request.query.find("group");
    const auto group = only == request.query.end() ? std::nullopt : std::optional(only->second);
    return http::Response{.body = lag_to_json(*published()->lag, system_clock().now().mono, group) + "\n"};
  });
  server_.route("GET", "/api/check/{group...}",
                [this](const Request& request) { return check(request.param("group")); });
  server_.route("GET", "/api/directives", [this](const Request& request) { return directives_for(request); });
  server_.route("POST", "/api/pause", [this](const Request& request) { return order(OrderKind::kPause, request); });
  server_.route("POST", "/api/resume", [this](const Request& request) { return order(OrderKind::kResume, request); });
  server_.route("POST", "/api/limit", [this](const Request& request) { return order(OrderKind::kLimit, request); });
  server_.stream("/api/events",
                 [this](const Request&, std::shared_ptr<http::Stream> stream) { open_events(std::move(stream)); });
  server_.serve_metrics([this] { return metrics_.text() + published()->metrics; });
  server_.serve_health([]() -> Result<void> { return {}; });
}

http::Response Guard::State::order(OrderKind kind, const http::Request& request) {
  const auto order = parse_order(kind, request, {settings_.default_ttl, settings_.max_ttl});
  if (!order) return http::error_response(400, order.error().message);
  const Now now = system_clock().now();
  flow::Decision decision{.when = now.mono, .law = std::string(kOperator), .scope = order->scope};
  json reply{{"scope", to_string(order->scope)}};
  {
    std::lock_guard lock(mutex_);
    if (kind == OrderKind::kResume) {
      const auto taken = book_.take_back(kOperator, order->scope, now.mono);
      decision.why = fmt::format("resumed; {} orders taken back", taken.size());
      reply["taken_back"] = taken.size();
    } else {
      const Directive directive = to_directive(kind, *order, now.mono);
      book_.put(kOperator, directive);
      decision.limit = directive.signal.value;
      decision.why = directive.reason;
      decision.until = directive.expires;
      reply["expires_in_s"] = to_seconds(order->ttl);
      reply["expires_ms"] = to_unix_ms(now.wall + order->ttl);
    }
    journal_.add(std::move(decision));
    note_journal();
  }
  if (directives_changed) directives_changed();
  return answer(reply);
}

http::Response Guard::State::directives_for(const http::Request& request) const {
  DirectiveQuery query;
  for (const auto& [name, value] : request.query) {
    if (name == "client_id") {
      query.client_id = value;
    } else if (name == "topics") {
      for (std::size_t begin = 0; begin < value.size();) {
        const auto end = std::min(value.find(',', begin), value.size());
        if (end > begin) query.topics.push_back(value.substr(begin, end - begin));
        begin = end + 1;
      }
    } else if (name == "laws" && (value == "true" || value == "false")) {
      query.laws = value == "true";
    } else {
      return http::error_response(
          400, fmt::format("{}={} is not known here; it takes client_id, topics, laws", name, value));
    }
  }
  const MonoTime now = system_clock().now().mono;
  return {.body = http::directives_to_json(directives(now, query), now) + "\n"};
}

http::Response Guard::State::check(const std::string& group) const {
  const auto now = system_clock().now().mono;
  const auto snapshot = published()->lag;
  const auto found = snapshot->groups.find(group);
  const GroupLag* lag = found == snapshot->groups.end() ? nullptr : &found->second;
  const auto verdict = [&](int status, std::string_view word, std::string reason) {
    json body{{"group", group}, {"verdict", word}, {"reason", std::move(reason)}};
    if (lag != nullptr) {
      body["lag"] = or_null(lag->records);
      body["lag_seconds"] = seconds_or_null(lag->time);
    }
    auto response = answer(body, status);
    if (status == 429) response.headers.emplace_back("Retry-After", "1");
    return response;
  };
  const auto cannot = [&](std::string reason) { return verdict(503, "cannot_measure", std::move(reason)); };

  if (snapshot->number == 0) return cannot("nothing has been measured yet");
  if (lag == nullptr && !snapshot->complete) return cannot("not every broker answers: " + snapshot->errors.front());
  if (lag == nullptr) return verdict(404, "unknown", "there is no group of that name");
  if (lag->stale) return cannot(lag->error);
  if (now - snapshot->taken > 10 * settings_.period + settings_.admin.timeout)
    return cannot("the last measurement is too old");
  if (lag->unmeasured > 0) return cannot(fmt::format("{} partitions could not be measured", lag->unmeasured));
  std::vector<std::string> topics;
  for (const auto& p : lag->partitions) {
    if (topics.empty() || topics.back() != p.partition.topic) topics.push_back(p.partition.topic);
  }
  if (!lag->records) return cannot("the group has not committed anything");

  for (const auto& directive : directives(now, {.topics = topics, .laws = false})) {
    if (directive.pause && directive.scope.client_id.empty() && !directive.scope.partition) {
      return verdict(429, "wait", "paused: " + directive.reason);
    }
  }
  if (lag->known_time && *lag->known_time > settings_.lag_target) {
    const bool exact = lag->time && std::ranges::all_of(lag->partitions, [&](const PartitionLag& p) {
                         return p.time != lag->time || p.time_exact;
                       });
    return verdict(429, "wait",
                   fmt::format("the lag is {}{:.1f} s, target {:.1f} s", exact ? "" : "at least ",
                               to_seconds(*lag->known_time), to_seconds(settings_.lag_target)));
  }
  if (lag->records.value_or(0) > settings_.max_lag) {
    return verdict(429, "wait", fmt::format("the lag is {} records, at most {}", *lag->records, settings_.max_lag));
  }
  const auto silent = std::count_if(lag->partitions.begin(), lag->partitions.end(),
                                    [](const PartitionLag& p) { return p.assigned && !p.records; });
  if (silent > 0) {
    return cannot(fmt::format("{} {} and no commit of the group", silent,
                              silent == 1 ? "partition holds records" : "partitions hold records"));
  }
  return verdict(200, "go", "");
}

std::string Guard::State::status() const {
  const Now now = system_clock().now();
  const auto snapshot = published()->lag;
  json body{
      {"now_ms", to_unix_ms(now.wall)},
      {"uptime_s", to_seconds(now.mono - started_.mono)},
      {"bootstrap", settings_.admin.bootstrap},
      {"lag_target_s", to_seconds(settings_.lag_target)},
      {"measure",
       {{"number", snapshot->number},
        {"age_s", snapshot->last_complete ? json(to_seconds(now.mono - *snapshot->last_complete)) : json(nullptr)},
        {"took_ms", to_ms(snapshot->took)},
        {"errors", snapshot->errors}}},
      {"pipeline", pipeline_status ? pipeline_to_json(pipeline_status()) : json(nullptr)},
      {"groups", json::array()},
      {"journal", json::array()}};
  for (const auto& [name, group] : snapshot->groups) body["groups"].push_back(group_to_json(name, group));
  std::lock_guard lock(mutex_);
  const auto active = book_.active(now.mono);
  body["directives"] = json::parse(http::directives_to_json(active, now.mono))["directives"];
  const auto& decisions = journal_.decisions();
  const std::size_t skip = decisions.size() - std::min(decisions.size(), kShownDecisions);
  for (std::size_t i = decisions.size(); i > skip; --i)
    body["journal"].push_back(decision_to_json(decisions[i - 1], now));
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

void Guard::State::open_events(std::shared_ptr<http::Stream> stream) {
  stream->send("status", status());
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(stream));
}

}  // namespace weir::guard
