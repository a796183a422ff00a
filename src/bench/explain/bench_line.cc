#include "bench/explain/bench_line.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace weir::bench {
namespace {

using Json = nlohmann::json;
using Member = std::optional<double> BenchFigures::*;

constexpr std::size_t kLongestTextLine = 500;

constexpr std::array<std::pair<const char*, Member>, 9> kJsonNames{{
    {"messages", &BenchFigures::messages},
    {"first_ms", &BenchFigures::first_ms},
    {"last_ms", &BenchFigures::last_ms},
    {"max_ms", &BenchFigures::max_ms},
    {"slope_ms_per_1000", &BenchFigures::slope_ms_per_1000},
    {"arrival_per_s", &BenchFigures::arrival_per_s},
    {"service_per_s", &BenchFigures::service_per_s},
    {"max_queue", &BenchFigures::max_queue},
    {"acked_during_loop", &BenchFigures::acked_during_loop},
}};

// "14,485" as "14485"; other commas stay.
std::string without_group_commas(std::string_view line) {
  const auto digit = [&](std::size_t at) { return at < line.size() && line[at] >= '0' && line[at] <= '9'; };
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != ',' || i == 0 || !digit(i - 1) || !digit(i + 1)) out += line[i];
  }
  return out;
}

// "12730/s"; none for "unknown".
std::optional<double> rate(const char* text) {
  double value = 0;
  return std::sscanf(text, "%lf/s", &value) == 1 ? std::optional(value) : std::nullopt;
}

void read_text(const std::string& line, BenchFigures& figures) {
  double a = 0, b = 0, c = 0, d = 0;
  std::array<char, 32> arrival{}, service{};
  if (std::sscanf(line.c_str(), "  %lf messages, arrival %31[^,], service %31s", &a, arrival.data(), service.data()) ==
      3) {
    figures.messages = a;
    figures.arrival_per_s = rate(arrival.data());
    figures.service_per_s = rate(service.data());
  } else if (std::sscanf(line.c_str(),
                         "  receive minus append: first %lf ms, last %lf, p50 %*f, p99 %*f, max %lf, %lf ms per", &a,
                         &b, &c, &d) == 4) {
    figures.first_ms = a;
    figures.last_ms = b;
    figures.max_ms = c;
    figures.slope_ms_per_1000 = d;
  } else if (std::sscanf(line.c_str(), "  producer's queue: %lf at most, %lf acknowledged", &a, &b) == 2) {
    figures.max_queue = a;
    figures.acked_during_loop = b;
  }
}

}  // namespace

std::optional<Observations> observations_of(const BenchFigures& figures) {
  const double messages = figures.messages.value_or(0);
  const double acked = figures.acked_during_loop.value_or(-1);
  if (!(messages >= 2 && messages <= 1e15) || !(acked >= 0 && acked <= messages)) return std::nullopt;

  Observations out;
  out.samples = static_cast<std::int64_t>(messages);
  out.first_number = 1;
  out.last_number = out.samples;
  out.longest_run = out.samples - 1;
  out.first_ms = out.min_ms = figures.first_ms.value_or(0);
  out.last_ms = figures.last_ms.value_or(0);
  out.max_ms = figures.max_ms.value_or(0);
  out.slope_ms_per_1000 = figures.slope_ms_per_1000;
  out.arrival_per_s = figures.arrival_per_s;
  out.service_per_s = figures.service_per_s;
  const auto steps = static_cast<double>(out.longest_run);
  if (out.arrival_per_s.value_or(0) > 0) out.stamps_ms = steps * 1000 / *out.arrival_per_s;
  if (out.service_per_s.value_or(0) > 0) out.received_ms = steps * 1000 / *out.service_per_s;
  // What was not acknowledged during the loop was in the queue at its end.
  out.queue_lines = out.samples;
  out.queue_steps = out.longest_run;
  out.queue_rise = messages - acked;
  out.queue_growth_per_record = out.queue_rise / messages;
  out.max_queue = static_cast<std::int64_t>(std::clamp(figures.max_queue.value_or(0), 0.0, 1e15));
  return out;
}

bool BenchReader::feed(std::string_view line) { return feed_json(line) || feed_text(line); }

bool BenchReader::feed_json(std::string_view line) {
  if (!line.starts_with(R"({"question":)")) return false;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json["question"].is_object()) return false;
  const Json& run = json["question"];
  BenchFigures figures;
  for (const auto& [name, member] : kJsonNames) {
    const auto it = run.find(name);
    if (it != run.end() && it->is_number()) figures.*member = it->get<double>();
  }
  auto seen = observations_of(figures);
  if (!seen) return false;
  run_ = std::move(seen);
  return true;
}

bool BenchReader::feed_text(std::string_view line) {
  if (line.starts_with("(")) {
    in_question_ = line.starts_with("(a) as in the question");
    if (in_question_) figures_ = {};
    return in_question_;
  }
  if (!in_question_ || !line.starts_with("  ") || line.size() > kLongestTextLine) return false;
  read_text(without_group_commas(line), figures_);
  if (auto seen = observations_of(figures_)) run_ = std::move(seen);
  return true;
}

}  // namespace weir::bench
