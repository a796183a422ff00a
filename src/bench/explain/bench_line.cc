#include "bench/explain/bench_line.h"

#include <nlohmann/json.hpp>

namespace weir::bench {
namespace {

using Json = nlohmann::json;

std::optional<double> number(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

}  // namespace

std::optional<Observations> parse_bench_line(std::string_view line) {
  if (!line.starts_with(R"({"question":)")) return std::nullopt;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json["question"].is_object()) return std::nullopt;
  const Json& run = json["question"];
  const double messages = number(run, "messages").value_or(0);
  const std::optional<double> acked = number(run, "acked_during_loop");
  if (!(messages >= 2 && messages <= 1e15) || !acked || !(*acked >= 0 && *acked <= messages)) return std::nullopt;

  Observations out;
  out.samples = static_cast<std::int64_t>(messages);
  out.first_number = 1;
  out.last_number = out.samples;
  out.longest_run = out.samples - 1;
  out.first_ms = out.min_ms = number(run, "first_ms").value_or(0);
  out.last_ms = number(run, "last_ms").value_or(0);
  out.max_ms = number(run, "max_ms").value_or(0);
  out.slope_ms_per_1000 = number(run, "slope_ms_per_1000");
  out.arrival_per_s = number(run, "arrival_per_s");
  out.service_per_s = number(run, "service_per_s");
  const auto steps = static_cast<double>(out.longest_run);
  if (out.arrival_per_s.value_or(0) > 0) out.stamps_ms = steps * 1000 / *out.arrival_per_s;
  if (out.service_per_s.value_or(0) > 0) out.received_ms = steps * 1000 / *out.service_per_s;
  // What was not acknowledged during the loop was in the queue at its end.
  out.queue_lines = out.samples;
  out.queue_steps = out.longest_run;
  out.queue_rise = messages - *acked;
  out.queue_growth_per_record = out.queue_rise / messages;
  out.max_queue = static_cast<std::int64_t>(number(run, "max_queue").value_or(0));
  return out;
}

}  // namespace weir::bench
