#include "bench/seed/report.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bench/explain/explain.h"

namespace weir::bench {
namespace {

using Json = nlohmann::ordered_json;

Json rounded(double value) { return std::isfinite(value) ? Json(std::round(value * 1000) / 1000) : Json(nullptr); }
Json rounded(const std::optional<double>& value) { return value ? rounded(*value) : Json(nullptr); }

Json to_json(const Figures& figures, std::int64_t max_queue, std::int64_t acked_during_loop) {
  Json json;
  json["messages"] = figures.messages;
  // Of no message there is no latency.
  const auto measured = [&](double ms) { return figures.messages > 0 ? rounded(ms) : Json(nullptr); };
  json["first_ms"] = measured(figures.first_ms);
  json["last_ms"] = measured(figures.last_ms);
  json["p50_ms"] = measured(figures.p50_ms);
  json["p99_ms"] = measured(figures.p99_ms);
  json["max_ms"] = measured(figures.max_ms);
  json["slope_ms_per_1000"] = rounded(figures.slope_ms_per_1000);
  json["max_queue"] = max_queue;
  json["acked_during_loop"] = acked_during_loop;
  json["arrival_per_s"] = rounded(figures.arrival_per_s);
  json["service_per_s"] = rounded(figures.service_per_s);
  Json& stages = json["stages"] = Json::object();
  for (const auto& [name, stage] : figures.stages) {
    stages[name] = {{"mean_ms", rounded(to_ms(stage.mean))},
                    {"p50_ms", rounded(to_ms(stage.p50))},
                    {"p99_ms", rounded(to_ms(stage.p99))},
                    {"max_ms", rounded(to_ms(stage.max))}};
  }
  return json;
}

std::string rate(const std::optional<double>& per_s) { return per_s ? with_commas(*per_s) + "/s" : "unknown"; }

void add(std::string& text, std::string_view title, const Figures& figures) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{}\n  {} messages, arrival {}, service {}\n", title,
                 with_commas(static_cast<double>(figures.messages)), rate(figures.arrival_per_s),
                 rate(figures.service_per_s));
  fmt::format_to(out,
                 "  receive minus append: first {:.1f} ms, last {:.1f}, p50 {:.1f}, p99 {:.1f}, max {:.1f}, {:+.2f} ms "
                 "per 1,000\n",
                 figures.first_ms, figures.last_ms, figures.p50_ms, figures.p99_ms, figures.max_ms,
                 figures.slope_ms_per_1000.value_or(0));
  fmt::format_to(out, "  mean time of a message:");
  for (const auto& [name, stage] : figures.stages) fmt::format_to(out, " {} {:.3f} ms", name, to_ms(stage.mean));
  fmt::format_to(out, "\n");
}

void add_queue(std::string& text, const Burst& burst) {
  fmt::format_to(std::back_inserter(text), "  producer's queue: {} at most, {} acknowledged while the loop ran\n",
                 with_commas(static_cast<double>(burst.max_queue)),
                 with_commas(static_cast<double>(burst.acked_during_loop)));
}

}  // namespace

std::string to_json(const SeedReport& report) {
  Json json;
  json["question"] = to_json(report.question.figures, report.question.max_queue, report.question.acked_during_loop);
  json["no_work"] = to_json(report.no_work.figures, report.no_work.max_queue, report.no_work.acked_during_loop);
  Json& guarded = json["guarded"] =
      to_json(report.guarded.figures, report.guarded.max_queue, report.guarded.acked_during_loop);
  guarded["capacity_used"] = rounded(report.guarded.capacity_used);
  guarded["measured_s"] = rounded(report.guarded.figures.seconds);
  guarded["intended_to_received_p99_ms"] = rounded(report.guarded.figures.intended_to_received_p99_ms);
  guarded["blocked_ms"] = rounded(report.guarded.figures.blocked_ms);
  return json.dump();
}

std::string to_text(const SeedReport& report) {
  std::string text;
  add(text, "(a) as in the question: a burst, 77 us of work for each message", report.question.figures);
  add_queue(text, report.question);
  add(text, "(b) the same burst, no work: the rate of the messages is not the cause", report.no_work.figures);
  add_queue(text, report.no_work);
  const Guarded& guarded = report.guarded;
  add(text, "(c) guarded: the same consumer, weir's producer with a window over what is not consumed yet",
      guarded.figures);
  fmt::format_to(std::back_inserter(text),
                 "  {:.1f} % of the capacity of (a) over {:.1f} s; window {} records at the end\n"
                 "  from intended send to receive p99 {:.1f} ms; blocked in send {:.0f} ms in all\n"
                 "  warm-up before that: {} messages, p99 {:.1f} ms, max {:.1f} ms\n",
                 100 * guarded.capacity_used, guarded.figures.seconds, guarded.window_records,
                 guarded.figures.intended_to_received_p99_ms, guarded.figures.blocked_ms,
                 with_commas(static_cast<double>(guarded.warm_up.messages)), guarded.warm_up.p99_ms,
                 guarded.warm_up.max_ms);
  text += "\nWhat explain says of (a):\n\n" + to_text(report.question.seen, diagnose(report.question.seen));
  return text;
}

}  // namespace weir::bench
