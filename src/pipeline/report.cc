#include "pipeline/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weir::pipeline {
namespace {

using Json = nlohmann::ordered_json;

// Three decimals of a millisecond are more than the histogram can tell apart.
double rounded_ms(Duration d) { return static_cast<double>(d.count() / 1000) / 1000.0; }

Json latency_json(const LatencySummary& summary) {
  return {{"p50", rounded_ms(summary.p50)}, {"p99", rounded_ms(summary.p99)}, {"max", rounded_ms(summary.max)}};
}

Json by_reason(const std::map<std::string, std::uint64_t>& counts) {
  Json out = Json::object();
  for (const auto& [reason, count] : counts) out[reason] = count;
  return out;
}

}  // namespace

std::string to_json(const Report& r) {
  Json out;
  out["offered"] = r.offered;
  out["read"] = r.read;
  out["behind"] = static_cast<std::int64_t>(r.offered) - static_cast<std::int64_t>(r.read);
  out["acked"] = r.acked;
  out["stored"] = r.stored;
  out["duplicates"] = r.duplicates;
  out["dead_lettered"] = r.dead_lettered;
  out["agent_in_memory"] = r.agent_in_memory;
  out["sink_in_memory"] = r.sink_in_memory;
  out["spooled"] = r.spooled;
  out["shed"] = by_reason(r.shed);
  out["rejected"] = by_reason(r.rejected);
  out["lag"] = r.lag ? Json(*r.lag) : Json(nullptr);
  out["lag_seconds"] = r.lag_seconds ? Json(*r.lag_seconds) : Json(nullptr);
  out["latency_ms"] = latency_json(r.latency);
  out["error_latency_ms"] = latency_json(r.error_latency);
  out["peak_buffer_bytes"] = r.peak_buffer_bytes;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string status_line(const Status& s) {
  const auto per_second = [](double rate) { return grouped(static_cast<std::uint64_t>(rate + 0.5)); };
  std::string limit = "none";
  if (s.limit.limited_by != LimitedBy::kNothing) {
    limit = std::string(to_string(s.limit.limited_by));
    if (!s.limit.why.empty()) limit += ": " + s.limit.why;
  }
  return fmt::format("read {} ({}/s)  acked {}  stored {} ({}/s)  lag {}  limit {}  p50 {:.0f} ms  p99 {:.0f} ms",
                     grouped(s.read), per_second(s.read_per_s), grouped(s.acked), grouped(s.stored),
                     per_second(s.stored_per_s), s.lag ? grouped(static_cast<std::uint64_t>(*s.lag)) : "unknown", limit,
                     to_ms(s.latency.p50), to_ms(s.latency.p99));
}

}  // namespace weir::pipeline
