#include "bench/explain/explain.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

namespace weir::bench {
namespace {

using Json = nlohmann::ordered_json;

Json number(std::optional<double> value, double digits) {
  if (!value || !std::isfinite(*value)) return nullptr;
  const double scale = std::pow(10.0, digits);
  const double rounded = std::round(*value * scale) / scale;
  return std::isfinite(rounded) ? rounded : *value;
}

std::string rate(std::optional<double> per_s) { return per_s ? with_commas(*per_s) + " messages/s" : "unknown"; }

}  // namespace

Explainer::Explainer()
    : splitter_([this](std::string_view line) {
        if (!bench_.feed(line)) observer_.feed(parse_line(line));
      }) {}

void Explainer::end_of_input() {
  splitter_.finish();
  observer_.end_of_input();
}

Result<Observations> Explainer::result() const {
  Observations seen = observer_.result();
  if (seen.samples + seen.queue_lines + seen.queue_full_lines == 0) {
    if (bench_.run()) return *bench_.run();
    return fail(
        ErrorKind::kInvalid,
        fmt::format(
            "nothing recognised in {} lines: expected lines like \"Message 1 received | Timestamp: 1618685061270 "
            "| Latency: 12.36\" or \"IN QUEUE: 7\", or what `weir bench seed` prints",
            seen.unknown_lines));
  }
  return seen;
}

std::string to_text(const Observations& seen, const Diagnosis& d) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "Read {} messages", with_commas(static_cast<double>(seen.samples)));
  if (seen.samples > 0) fmt::format_to(out, " (numbers {} to {})", seen.first_number, seen.last_number);
  fmt::format_to(out, ", {} queue lines, {} queue-full lines; {} other lines skipped.\n\n",
                 with_commas(static_cast<double>(seen.queue_lines)),
                 with_commas(static_cast<double>(seen.queue_full_lines)),
                 with_commas(static_cast<double>(seen.unknown_lines)));

  if (seen.samples > 0) {
    fmt::format_to(out, "Arrival   {}{}\n", rate(seen.arrival_per_s),
                   seen.arrival_per_s ? fmt::format(" ({:.0f} ms of stamps)", seen.stamps_ms) : " (one stamp only)");
    fmt::format_to(out, "Service   {}{}\n", rate(seen.service_per_s),
                   seen.service_per_s ? fmt::format(" ({:.1f} us each, {:.1f} ms from first to last receive)",
                                                    1e6 / *seen.service_per_s, seen.received_ms)
                                      : "");
    if (seen.windows.size() > 1) {
      fmt::format_to(out, "          it changed:\n");
      for (const ServiceWindow& w : seen.windows) {
        fmt::format_to(out, "          {:>12}/s ({:.1f} us each) from message {} to {}\n", with_commas(w.per_s),
                       1e6 / w.per_s, with_commas(static_cast<double>(w.first_number)),
                       with_commas(static_cast<double>(w.last_number)));
      }
    }
    fmt::format_to(out, "Latency   first {:.1f} ms, last {:.1f}, smallest {:.1f}, largest {:.1f}\n", seen.first_ms,
                   seen.last_ms, seen.min_ms, seen.max_ms);
  }
  if (seen.slope_ms_per_1000) {
    fmt::format_to(out, "Slope     {:+.2f} ms per 1,000 messages", *seen.slope_ms_per_1000);
    if (seen.arrival_per_s) {
      fmt::format_to(out, " ({:+.2f} s for every second of arrivals)",
                     *seen.slope_ms_per_1000 * *seen.arrival_per_s / 1e6);
    }
    fmt::format_to(out, ": {}\n",
                   d.trend == Trend::kGrowing   ? "growing"
                   : d.trend == Trend::kFalling ? "falling"
                                                : "flat");
  }
  if (seen.queue_lines + seen.queue_full_lines > 0) {
    fmt::format_to(out, "Queue     {} in the producer, {} at most\n", queue_growth(seen),
                   with_commas(static_cast<double>(seen.max_queue)));
  }

  fmt::format_to(out, "\nBottleneck: {} (confidence {:.2f}", name(d.bottleneck), d.confidence);
  for (std::size_t i = 0; i < d.factors.size(); ++i) {
    fmt::format_to(out, "{}{:.2f} {}", i == 0 ? " = " : " x ", d.factors[i].value, d.factors[i].why);
  }
  fmt::format_to(out, ")\n{}\n", d.where);
  for (std::size_t i = 0; i < d.advice.size(); ++i)
    fmt::format_to(out, "{}{}. {}\n", i == 0 ? "\n" : "", i + 1, d.advice[i]);
  return text;
}

std::string to_json(const Observations& seen, const Diagnosis& d) {
  Json json;
  json["samples"] = seen.samples;
  json["arrival_per_s"] = number(seen.arrival_per_s, 1);
  json["service_per_s"] = number(seen.service_per_s, 1);
  json["slope_ms_per_1000"] = number(seen.slope_ms_per_1000, 3);
  json["queue_growth_per_record"] = number(seen.queue_growth_per_record, 4);
  json["bottleneck"] = name(d.bottleneck);
  json["confidence"] = number(d.confidence, 3);
  json["advice"] = d.advice;
  return json.dump();
}

}  // namespace weir::bench
