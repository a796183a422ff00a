#include "http/directives.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weir::http {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxTtlMs = 3'600'000;

/// A member of a JSON object that must be of one type when it is there.
template <typename T>
std::optional<T> member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->get<T>();  // Throws json::exception on another type; the caller catches.
}

SignalKind signal_kind(std::string_view text) {
  for (int kind = 0; kind <= static_cast<int>(SignalKind::kOperator); ++kind) {
    if (to_string(static_cast<SignalKind>(kind)) == text) return static_cast<SignalKind>(kind);
  }
  return SignalKind::kNone;
}

Directive read_directive(const json& object, MonoTime now) {
  Directive directive;
  const json& scope = object.at("scope");
  directive.scope.client_id = member<std::string>(scope, "client_id").value_or("");
  directive.scope.topic = member<std::string>(scope, "topic").value_or("");
  if (const auto partition = member<std::int32_t>(scope, "partition"))
    directive.scope.partition = PartitionId(*partition);
  directive.pause = member<bool>(object, "pause").value_or(false);
  directive.records_per_second = member<double>(object, "records_per_second");
  directive.bytes_per_second = member<double>(object, "bytes_per_second");
  directive.reason = member<std::string>(object, "reason").value_or("");
  if (const auto signal = object.find("signal"); signal != object.end()) {
    directive.signal = {signal_kind(member<std::string>(*signal, "kind").value_or("")),
                        member<double>(*signal, "value").value_or(0)};
  }
  const auto ttl_ms = object.at("ttl_ms").get<std::int64_t>();
  const auto positive = [](const std::optional<double>& rate) { return !rate || *rate > 0; };
  if (ttl_ms < 0 || ttl_ms > kMaxTtlMs) throw std::out_of_range("ttl_ms must be between 0 and one hour");
  if (!positive(directive.records_per_second) || !positive(directive.bytes_per_second)) {
    throw std::out_of_range("a rate must be above 0");
  }
  directive.expires = now + std::chrono::milliseconds(ttl_ms);
  return directive;
}

}  // namespace

std::string directives_to_json(std::span<const Directive> directives, MonoTime now) {
  json list = json::array();
  for (const Directive& directive : directives) {
    json scope = json::object();
    if (!directive.scope.client_id.empty()) scope["client_id"] = directive.scope.client_id;
    if (!directive.scope.topic.empty()) scope["topic"] = directive.scope.topic;
    if (directive.scope.partition) scope["partition"] = directive.scope.partition->value;
    json item{{"scope", scope},
              {"pause", directive.pause},
              {"reason", directive.reason},
              {"signal", {{"kind", to_string(directive.signal.kind)}, {"value", directive.signal.value}}},
              {"ttl_ms", std::chrono::ceil<std::chrono::milliseconds>(directive.expires - now).count()}};
    if (directive.records_per_second) item["records_per_second"] = *directive.records_per_second;
    if (directive.bytes_per_second) item["bytes_per_second"] = *directive.bytes_per_second;
    list.push_back(std::move(item));
  }
  return json{{"directives", list}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<std::vector<Directive>> directives_from_json(std::string_view text, MonoTime now) {
  try {
    std::vector<Directive> directives;
    const json document = json::parse(text);
    for (const json& item : document.at("directives")) directives.push_back(read_directive(item, now));
    return directives;
  } catch (const std::exception& error) {
    return fail(ErrorKind::kInvalid, fmt::format("these are not directives: {}", error.what()));
  }
}

Result<std::vector<Directive>> fetch_directives(const Address& address, const std::string& client_id,
                                                const std::vector<std::string>& topics, bool laws, const Clock& clock,
                                                Duration timeout) {
  std::string list;
  for (const auto& topic : topics) list += (list.empty() ? "" : ",") + topic;
  const auto reply =
      get(address,
          fmt::format("/api/directives?client_id={}&topics={}&laws={}", url_encode(client_id), url_encode(list), laws),
          timeout);
  if (!reply) return tl::unexpected(reply.error());
  if (reply->status != 200) {
    return fail(ErrorKind::kUnavailable, fmt::format("the guard at {} answered {}", address.text(), reply->status));
  }
  auto directives = directives_from_json(reply->body, clock.now().mono);
  if (!directives) directives.error().message = address.text() + ": " + directives.error().message;
  return directives;
}

}  // namespace weir::http
