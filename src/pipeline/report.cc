#include "pipeline/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace weir::pipeline {
namespace {

using Json = nlohmann::ordered_json;

// Three decimals of a millisecond are more than the histogram can tell apart.
double rounded_ms(Duration d) {
  const std::int64_t us = d / std::chrono::microseconds(1);
  return static_cast<double>(us) / 1000.0;
}

Json latency_json(const LatencySummary& summary) {
  return {{"p50", rounded_ms(summary.p50)}, {"p99", rounded_ms(summary.p99)}, {"max", rounded_ms(summary.max)}};
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

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
  out["shed"] = r.shed;
  out["rejected"] = r.rejected;
  out["lag"] = r.lag ? Json(*r.lag) : Json(nullptr);
  out["lag_seconds"] = r.lag_seconds ? Json(*r.lag_seconds) : Json(nullptr);
  out["latency_ms"] = latency_json(r.latency);
  out["error_latency_ms"] = latency_json(r.error_latency);
  out["peak_buffer_bytes"] = r.peak_buffer_bytes;
  out["long_lines"] = r.long_lines;
  out["lost_bytes"] = r.lost_bytes;
  return text_of(out);
}

std::string to_json(const agent::AgentStats& s) {
  return text_of({{"offered", s.offered},
                  {"read", s.read},
                  {"behind", s.behind},
                  {"acked", s.acked},
                  {"in_memory", s.in_memory},
                  {"spooled", s.spooled},
                  {"shed", s.shed},
                  {"rejected", s.rejected},
                  {"truncations", s.truncations},
                  {"lost_bytes", s.lost_bytes},
                  {"long_lines", s.long_lines},
                  {"unread_bytes", s.unread_bytes},
                  {"paused_s", to_seconds(s.paused)},
                  {"peak_buffer_bytes", s.peak_buffer_bytes}});
}

std::string to_json(const sink::SinkStats& s) {
  return text_of({{"fetched", s.fetched},
                  {"stored", s.stored},
                  {"duplicates", s.duplicates},
                  {"dead_lettered", s.dead_lettered},
                  {"in_memory", s.in_memory},
                  {"skipped", s.skipped},
                  {"expired", s.expired},
                  {"latency_ms", latency_json(s.latency)},
                  {"error_latency_ms", latency_json(s.error_latency)}});
}

std::vector<std::string> loss_lines(const metrics::Reasons& shed, const metrics::Reasons& rejected,
                                    Bytes max_request_size) {
  std::vector<std::string> lines;
  for (const auto& [reason, count] : shed) {
    const bool stopped = reason == "stopped";
    lines.push_back(fmt::format("shed {}: {}{}", counted(count, "record"), reason,
                                stopped ? " (taken from standard input, not sent before the end; raise --drain)" : ""));
  }
  for (const auto& [reason, count] : rejected) {
    const bool large = reason == "too_large";
    lines.push_back(fmt::format(
        "rejected {}: {} ({}); see rejected.jsonl in the agent's directory", counted(count, "record"), reason,
        large ? fmt::format("limit {}; raise max.request.size, and message.max.bytes of the broker with it",
                            counted(max_request_size, "byte"))
              : "the broker will never take it"));
  }
  return lines;
}

std::string left_behind(std::uint64_t in_memory, std::string_view gave_up, Duration drain, Bytes unread) {
  if (in_memory == 0 && gave_up.empty()) return "";
  std::string text = in_memory == 0 ? fmt::format("{} within {}", gave_up, format_duration(drain))
                                    : fmt::format("{} {} read and not acknowledged within {}", grouped(in_memory),
                                                  in_memory == 1 ? "entry" : "entries", format_duration(drain));
  if (unread > 0) text += fmt::format(", {} not read", format_size(unread));
  return text + "; what is in files is read again at the next start";
}

std::vector<std::string> damage_lines(std::uint64_t long_lines, const agent::AgentSettings& settings,
                                      const metrics::Reasons& lost_bytes) {
  std::vector<std::string> lines;
  if (long_lines > 0) {
    lines.push_back(fmt::format("{} longer than {} (line_limit): {}", counted(long_lines, "line"),
                                format_size(settings.line_limit),
                                settings.long_lines == agent::LongLines::kTruncate ? "cut there" : "left out"));
  }
  for (const auto& [reason, bytes] : lost_bytes) {
    lines.push_back(fmt::format("at least {} of the files were gone before they were read: {}", counted(bytes, "byte"),
                                reason == "truncated" ? "truncated or rewritten in place"
                                                      : "deleted before their turn, or above deleted_limit"));
  }
  return lines;
}

std::optional<std::int64_t> shown_lag(std::optional<std::int64_t> measured, std::uint64_t acked, std::uint64_t done) {
  if (!measured) return std::nullopt;
  return std::max(*measured, static_cast<std::int64_t>(acked) - static_cast<std::int64_t>(done));
}

std::string counted(std::uint64_t number, std::string_view what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string status_line(const Status& s) {
  const auto per_second = [](double rate) { return grouped(static_cast<std::uint64_t>(std::llround(rate))); };
  std::string limit = "none";
  if (s.limit.limited_by != LimitedBy::kNothing) {
    limit = std::string(to_string(s.limit.limited_by));
    if (!s.limit.why.empty()) limit += ": " + s.limit.why;
  } else if (!s.limit.why.empty()) {
    limit += " (" + s.limit.why + ")";
  }
  const auto time = [&](Duration d) {
    return s.latency.count > 0 ? fmt::format("{:.0f} ms", to_ms(d)) : std::string("?");
  };
  return fmt::format("read {} ({}/s)  acked {}  stored {} ({}/s)  lag {}  limit {}  p50 {}  p99 {}", grouped(s.read),
                     per_second(s.read_per_s), grouped(s.acked), grouped(s.stored), per_second(s.stored_per_s),
                     s.lag ? grouped(static_cast<std::uint64_t>(*s.lag)) : "?", limit, time(s.latency.p50),
                     time(s.latency.p99));
}

}  // namespace weir::pipeline
