#include "guard/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "guard/group_json.h"
#include "metrics/names.h"

namespace weir::guard {
namespace {

using nlohmann::json;

json offset_or_null(const std::optional<Offset>& offset) { return offset ? json(offset->value) : json(nullptr); }

json group_with_partitions(const std::string& name, const GroupLag& group) {
  json partitions = json::array();
  for (const auto& p : group.partitions) {
    partitions.push_back({{"topic", p.partition.topic},
                          {"partition", p.partition.partition.value},
                          {"status", to_string(p.state)},
                          {"committed", offset_or_null(p.committed)},
                          {"start", offset_or_null(p.start)},
                          {"end", offset_or_null(p.end)},
                          {"lag", or_null(p.records)},
                          {"lag_seconds", seconds_or_null(p.time)},
                          {"lag_seconds_exact", p.time_exact},
                          {"lost", p.lost},
                          {"assigned", p.assigned}});
  }
  json out = group_to_json(name, group);
  out["partitions"] = std::move(partitions);
  return out;
}

std::string escape_label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// Writes one family: its header, then whatever `each` finds for a group.
void family(std::string& out, const LagSnapshot& snapshot, const Metric& metric,
            const std::function<void(std::string& out, const std::string& group, const GroupLag&)>& each) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} gauge\n", metric.name, metric.help, metric.name);
  for (const auto& [name, group] : snapshot.groups) each(out, escape_label(name), group);
}

}  // namespace

std::string lag_to_json(const LagSnapshot& snapshot, MonoTime now, const std::optional<std::string>& only) {
  json groups = json::array();
  for (const auto& [name, group] : snapshot.groups) {
    if (!only || name == *only) groups.push_back(group_with_partitions(name, group));
  }
  const bool measured = snapshot.number > 0;
  return json{{"taken_ms", measured ? json(to_unix_ms(snapshot.taken_wall)) : json(nullptr)},
              {"age_s", snapshot.last_complete ? json(to_seconds(now - *snapshot.last_complete)) : json(nullptr)},
              {"took_ms", to_ms(snapshot.took)},
              {"clamped", snapshot.clamped},
              {"errors", snapshot.errors},
              {"groups", groups}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string lag_to_metrics(const LagSnapshot& snapshot) {
  std::string out;
  const auto per_partition = [&](const Metric& metric, auto value) {
    family(out, snapshot, metric, [&](std::string& text, const std::string& group, const GroupLag& lag) {
      for (const auto& p : lag.partitions) {
        const std::optional<double> v = value(p);
        if (!v) continue;
        fmt::format_to(std::back_inserter(text), "{}{{group=\"{}\",topic=\"{}\",partition=\"{}\"", metric.name, group,
                       escape_label(p.partition.topic), p.partition.partition.value);
        if (metric.name == metrics::kConsumerLag.name) {
          fmt::format_to(std::back_inserter(text), ",state=\"{}\",assigned=\"{}\"", escape_label(lag.state),
                         p.assigned);
        }
        fmt::format_to(std::back_inserter(text), "}} {}\n", *v);
      }
    });
  };
  const auto per_group = [&](const Metric& metric, auto value) {
    family(out, snapshot, metric, [&](std::string& text, const std::string& group, const GroupLag& lag) {
      const std::optional<double> v = value(lag);
      if (!v) return;
      fmt::format_to(std::back_inserter(text), "{}{{group=\"{}\"", metric.name, group);
      if (metric.name == metrics::kGroupMembers.name) {
        fmt::format_to(std::back_inserter(text), ",state=\"{}\"", escape_label(lag.state));
      }
      fmt::format_to(std::back_inserter(text), "}} {}\n", *v);
    });
  };
  using Number = std::optional<double>;
  per_partition(metrics::kConsumerLag, [](const PartitionLag& p) { return p.records ? Number(*p.records) : Number(); });
  per_partition(metrics::kConsumerLagSeconds,
                [](const PartitionLag& p) { return p.time ? Number(to_seconds(*p.time)) : Number(); });
  per_partition(metrics::kConsumerLost, [](const PartitionLag& p) { return p.lost > 0 ? Number(p.lost) : Number(); });
  per_group(metrics::kGroupLag, [](const GroupLag& g) { return g.records ? Number(*g.records) : Number(); });
  per_group(metrics::kGroupLagSeconds,
            [](const GroupLag& g) { return g.time ? Number(to_seconds(*g.time)) : Number(); });
  per_group(metrics::kGroupMembers, [](const GroupLag& g) { return g.members ? Number(*g.members) : Number(); });
  per_group(metrics::kGroupStale, [](const GroupLag& g) { return Number(g.stale ? 1 : 0); });
  per_group(metrics::kUncommittedPartitions, [](const GroupLag& g) { return Number(g.uncommitted); });
  return out;
}

std::string lag_to_table(const LagSnapshot& snapshot, const std::optional<std::string>& only) {
  const auto text = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string("?"); };
  const auto offset = [](const auto& value) { return value ? fmt::format("{}", value->value) : std::string("-"); };
  const auto time = [](const std::optional<Duration>& t, bool exact) {
    return t ? fmt::format("{}{:.1f}s", exact ? "" : ">", to_seconds(*t)) : std::string("?");
  };
  std::size_t group_width = 5;
  std::size_t topic_width = 5;
  for (const auto& [name, group] : snapshot.groups) {
    if (only && name != *only) continue;
    group_width = std::max(group_width, name.size());
    for (const auto& p : group.partitions) topic_width = std::max(topic_width, p.partition.topic.size());
  }
  std::string out = fmt::format("{:<{}}  {:<{}}  {:>5}  {:>12}  {:>12}  {:>10}  {:>8}  {}\n", "GROUP", group_width,
                                "TOPIC", topic_width, "PART", "COMMITTED", "END", "LAG", "TIME", "STATUS");
  for (const auto& [name, group] : snapshot.groups) {
    if (only && name != *only) continue;
    for (const auto& p : group.partitions) {
      std::string status(to_string(p.state));
      if (p.lost > 0) status += fmt::format(", {} lost to retention", p.lost);
      if (!p.assigned) status += ", no longer read";
      fmt::format_to(std::back_inserter(out), "{:<{}}  {:<{}}  {:>5}  {:>12}  {:>12}  {:>10}  {:>8}  {}\n", name,
                     group_width, p.partition.topic, topic_width, p.partition.partition.value, offset(p.committed),
                     offset(p.end), text(p.records), time(p.time, p.time_exact), status);
    }
    fmt::format_to(std::back_inserter(out), "{:<{}}  {}, {} members: lag {}{}, in time {}", name, group_width,
                   group.state, text(group.members), group.uncommitted > 0 && group.records ? "at least " : "",
                   text(group.records), time(group.time, true));
    if (group.uncommitted > 0)
      fmt::format_to(std::back_inserter(out), ", {} partitions without a commit", group.uncommitted);
    if (group.unmeasured > 0) fmt::format_to(std::back_inserter(out), ", {} partitions not measured", group.unmeasured);
    if (group.stale) fmt::format_to(std::back_inserter(out), ", stale: {}", group.error);
    out += '\n';
  }
  return out;
}

}  // namespace weir::guard
