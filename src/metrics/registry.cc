#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <variant>

#include "base/assert.h"
#include "metrics/histogram.h"
#include "weir/metrics.h"

namespace weir {

namespace {
/// Upper bounds of the exposed buckets, in seconds.
constexpr double kBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label_text(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out += fmt::format("{}=\"{}\"", name, escaped(value, true));
  }
  return out;
}

std::string number(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", v);
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter: return "counter";
    case MetricType::kGauge: return "gauge";
    case MetricType::kHistogram: return "histogram";
  }
  return "untyped";
}
}  // namespace

void Counter::raise_to(std::uint64_t total) {
  std::uint64_t was = value();
  while (was < total && !value_.compare_exchange_weak(was, total, std::memory_order_relaxed)) {
  }
}

struct LatencyMetric::State {
  mutable std::mutex mutex;
  metrics::LatencyHistogram histogram;
};

LatencyMetric::LatencyMetric() : state_(std::make_unique<State>()) {}
LatencyMetric::~LatencyMetric() = default;

void LatencyMetric::record(Duration d) {
  std::lock_guard lock(state_->mutex);
  state_->histogram.record(d);
}

LatencySummary LatencyMetric::summary() const {
  std::lock_guard lock(state_->mutex);
  return state_->histogram.summary();
}

struct Registry::State {
  using Value = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<LatencyMetric>>;
  struct Family {
    MetricType type;
    std::string help;
    std::map<std::string, Value> series;  // by label text
  };

  std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;

  /// Shared with the handles, so that ending a hook waits for a collection under way, and may outlive the registry.
  struct Hooks {
    std::recursive_mutex mutex;  // a hook may let go of a handle
    std::map<std::uint64_t, std::function<void()>> all;
    std::uint64_t next = 0;
  };
  std::shared_ptr<Hooks> hooks = std::make_shared<Hooks>();

  template <typename T>
  T& series(const Metric& metric, const Labels& labels) {
    std::lock_guard lock(mutex);
    auto family = families.find(metric.name);
    if (family == families.end()) {
      family = families.emplace(metric.name, Family{metric.type, std::string(metric.help), {}}).first;
    }
    WEIR_ASSERT(family->second.type == metric.type);
    auto& value = family->second.series[label_text(labels)];
    auto* kept = std::get_if<std::unique_ptr<T>>(&value);
    if (!kept || !*kept) {
      value = std::make_unique<T>();
      kept = std::get_if<std::unique_ptr<T>>(&value);
    }
    return **kept;
  }
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(const Metric& metric, const Labels& labels) {
  WEIR_ASSERT(metric.type == MetricType::kCounter);
  return state_->series<Counter>(metric, labels);
}

Gauge& Registry::gauge(const Metric& metric, const Labels& labels) {
  WEIR_ASSERT(metric.type == MetricType::kGauge);
  return state_->series<Gauge>(metric, labels);
}

LatencyMetric& Registry::latency(const Metric& metric, const Labels& labels) {
  WEIR_ASSERT(metric.type == MetricType::kHistogram);
  return state_->series<LatencyMetric>(metric, labels);
}

void Registry::remove(const Metric& metric, const Labels& labels) {
  std::lock_guard lock(state_->mutex);
  const auto family = state_->families.find(metric.name);
  if (family == state_->families.end()) return;
  family->second.series.erase(label_text(labels));
  if (family->second.series.empty()) state_->families.erase(family);
}

Registry::Hook Registry::on_collect(std::function<void()> hook) {
  const auto hooks = state_->hooks;
  std::lock_guard lock(hooks->mutex);
  const std::uint64_t id = hooks->next++;
  hooks->all.emplace(id, std::move(hook));
  return Hook(nullptr, [hooks, id](void*) {
    std::lock_guard inner(hooks->mutex);
    hooks->all.erase(id);
  });
}

std::string Registry::text() const {
  {
    const auto hooks = state_->hooks;
    std::lock_guard lock(hooks->mutex);
    const auto all = hooks->all;  // a hook may end hooks
    for (const auto& [id, hook] : all) {
      if (hooks->all.contains(id)) hook();
    }
  }
  std::lock_guard lock(state_->mutex);
  std::string out;
  for (const auto& [name, family] : state_->families) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(family.help, false), name, type_name(family.type));
    for (const auto& [labels, value] : family.series) {
      const std::string braces = labels.empty() ? "" : "{" + labels + "}";
      if (const auto* counter = std::get_if<std::unique_ptr<Counter>>(&value)) {
        out += fmt::format("{}{} {}\n", name, braces, (*counter)->value());
      } else if (const auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&value)) {
        out += fmt::format("{}{} {}\n", name, braces, number((*gauge)->value()));
      } else {
        auto& latency = *std::get<std::unique_ptr<LatencyMetric>>(value)->state_;
        std::lock_guard histogram_lock(latency.mutex);
        const std::string before = labels.empty() ? "" : labels + ",";
        for (const double bound : kBounds) {
          out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, before, bound,
                             latency.histogram.at_most(from_seconds(bound)));
        }
        out += fmt::format("{}_bucket{{{}le=\"+Inf\"}} {}\n", name, before, latency.histogram.count());
        out += fmt::format("{}_sum{} {}\n", name, braces, number(latency.histogram.sum()));
        out += fmt::format("{}_count{} {}\n", name, braces, latency.histogram.count());
      }
    }
  }
  return out;
}

}  // namespace weir
