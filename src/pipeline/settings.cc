#include "pipeline/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/units.h"
#include "client/kafka_settings.h"
#include "runtime/address.h"

namespace weir::pipeline {
namespace {

/// Sets one value; the error is completed with the place and the name by the caller.
using Setter = std::function<Result<void>(Settings&, const std::string&)>;

template <typename T>
Result<void> assign(Result<T> parsed, const std::function<void(T)>& use) {
  if (!parsed) return tl::unexpected(parsed.error());
  use(std::move(*parsed));
  return {};
}

Setter text(const std::function<std::string&(Settings&)>& where) {
  return [where](Settings& s, const std::string& v) -> Result<void> {
    where(s) = v;
    return {};
  };
}
Setter topic(const std::function<std::string&(Settings&)>& where) {
  return [where](Settings& s, const std::string& v) -> Result<void> {
    if (auto fine = check_topic_name(v); !fine) return fine;
    where(s) = v;
    return {};
  };
}
/// Almost every one of them is a period or a target, for which zero has no meaning.
enum class Zero : std::uint8_t { kRefused, kMeansNever };
Setter time(const std::function<void(Settings&, Duration)>& use, Zero zero = Zero::kRefused) {
  return [=](Settings& s, const std::string& v) -> Result<void> {
    auto parsed = parse_duration(v);
    if (!parsed) return tl::unexpected(parsed.error());
    const bool never = zero == Zero::kMeansNever && *parsed == Duration::zero();
    if (!never && (*parsed < std::chrono::milliseconds(1) || *parsed > std::chrono::hours(24)))
      return fail(ErrorKind::kInvalid, fmt::format("{} is not from 1ms to 24h{}", v,
                                                   zero == Zero::kMeansNever ? ", nor 0s, which means never" : ""));
    use(s, *parsed);
    return {};
  };
}
Setter size(Bytes low, Bytes high, const std::function<void(Settings&, Bytes)>& use) {
  return [=](Settings& s, const std::string& v) -> Result<void> {
    auto parsed = parse_size(v);
    if (!parsed) return tl::unexpected(parsed.error());
    if (*parsed < low || *parsed > high)
      return fail(ErrorKind::kInvalid, fmt::format("{} is not from {} to {}", v, format_size(low), format_size(high)));
    use(s, *parsed);
    return {};
  };
}
Setter number(std::int64_t low, std::int64_t high, const std::function<void(Settings&, std::int64_t)>& use) {
  return [=](Settings& s, const std::string& v) {
    return assign<std::int64_t>(parse_integer(v, low, high), [&](std::int64_t n) { use(s, n); });
  };
}
/// One of a few words.
template <typename T>
Setter word(const std::map<std::string, T>& words, const std::function<T&(Settings&)>& where) {
  return [=](Settings& s, const std::string& v) -> Result<void> {
    const auto found = words.find(v);
    if (found != words.end()) {
      where(s) = found->second;
      return {};
    }
    std::string allowed;
    for (const auto& [name, value] : words) allowed += (allowed.empty() ? "" : ", ") + name;
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is none of {}", v, allowed));
  };
}

constexpr std::int64_t kMaxRate = 1'000'000'000'000;
constexpr Bytes kMaxSize = 1024 * kGiB;

const std::map<std::string, Setter>& limits() {
  static const std::map<std::string, Setter> kTable{
      {"messages_per_second",
       number(1, kMaxRate,
              [](Settings& s, std::int64_t n) { s.producer.messages_per_second = static_cast<double>(n); })},
      {"bytes_per_second",
       size(1, kMaxSize, [](Settings& s, Bytes n) { s.producer.bytes_per_second = static_cast<double>(n); })},
      {"max_lag", number(0, kMaxRate,
                         [](Settings& s, std::int64_t n) {
                           s.producer.max_lag = n;
                           s.guard.max_lag = n;
                         })},
      {"pause", time([](Settings& s, Duration d) { s.producer.pause_sleep = d; })},
      {"lag_target", time([](Settings& s, Duration d) {
         s.producer.lag_target = d;
         s.guard.lag_target = d;
         s.guard.steering.law.target = d;
       })},
      {"window",
       [](Settings& s, const std::string& v) {
         return assign<bool>(parse_bool(v), [&](bool on) { s.producer.window = on; });
       }},
      {"window_release_after",
       time([](Settings& s, Duration d) { s.producer.window_release_after = d; }, Zero::kMeansNever)},
      {"ack_delay_target", time([](Settings& s, Duration d) { s.producer.ack_delay_target = d; })},
  };
  return kTable;
}

const std::map<std::string, Setter>& agent_table() {
  static const std::map<std::string, Setter> kTable{
      {"inputs",
       [](Settings& s, const std::string& v) -> Result<void> {
         if (v == "-")
           s.agent.standard_input = true;
         else
           s.agent.paths.emplace_back(v);
         return {};
       }},
      {"key",
       word<agent::KeyBy>(
           {{"server_id", agent::KeyBy::kServerId}, {"source", agent::KeyBy::kSource}, {"none", agent::KeyBy::kNone}},
           [](Settings& s) -> agent::KeyBy& { return s.agent.key; })},
      {"topic", topic([](Settings& s) -> std::string& { return s.agent.topic; })},
      {"urgent_topic", topic([](Settings& s) -> std::string& { return s.agent.urgent_topic; })},
      {"host_name", text([](Settings& s) -> std::string& { return s.agent.host_name; })},
      {"line_limit",
       size(agent::kLeastLineLimit, agent::kMostLineLimit, [](Settings& s, Bytes b) { s.agent.line_limit = b; })},
      {"long_lines",
       word<agent::LongLines>({{"truncate", agent::LongLines::kTruncate}, {"skip", agent::LongLines::kSkip}},
                              [](Settings& s) -> agent::LongLines& { return s.agent.long_lines; })},
      {"flush_after", time([](Settings& s, Duration d) { s.agent.flush_after = d; })},
      {"scan_period", time([](Settings& s, Duration d) { s.agent.scan_period = d; })},
      {"deleted_limit", size(0, kMaxSize, [](Settings& s, Bytes b) { s.agent.deleted_limit = b; })},
  };
  return kTable;
}

const std::map<std::string, Setter>& sink_table() {
  static const std::map<std::string, Setter> kTable{
      {"database",
       [](Settings& s, const std::string& v) -> Result<void> {
         if (v.empty()) return fail(ErrorKind::kInvalid, "must not be empty: a file, or leave it out");
         s.sink.database = v;
         return {};
       }},
      {"rate",
       number(1, kMaxRate, [](Settings& s, std::int64_t n) { s.sink.records_per_second = static_cast<double>(n); })},
      {"dead_letter_topic", topic([](Settings& s) -> std::string& { return s.sink.dead_letter_topic; })},
      {"attempts",
       number(1, 1000, [](Settings& s, std::int64_t n) { s.sink.attempts = static_cast<std::int32_t>(n); })},
      {"backoff", time([](Settings& s, Duration d) { s.sink.backoff = d; })},
      {"high_watermark",
       number(1, 10'000'000,
              [](Settings& s, std::int64_t n) { s.sink.consumer.high_watermark = static_cast<std::size_t>(n); })},
      {"low_watermark",
       number(0, 10'000'000,
              [](Settings& s, std::int64_t n) { s.sink.consumer.low_watermark = static_cast<std::size_t>(n); })},
      {"buffer_memory", size(kMiB, kMaxSize, [](Settings& s, Bytes b) { s.sink.consumer.buffer_memory = b; })},
  };
  return kTable;
}

const std::map<std::string, Setter>& guard_table() {
  static const std::map<std::string, Setter> kTable{
      {"listen", [](Settings& s, const std::string& v) { return set_http_address(s.guard.http, v); }},
      {"period", time([](Settings& s, Duration d) { s.guard.period = d; })},
      {"steer",
       [](Settings& s, const std::string& v) -> Result<void> {
         s.guard.steering.groups.push_back(v);
         return {};
       }},
      {"measure",
       [](Settings& s, const std::string& v) -> Result<void> {
         s.guard.measure.push_back(v);
         return {};
       }},
      {"names",
       [](Settings& s, const std::string& v) -> Result<void> {
         s.guard.http.names.push_back(v);
         return {};
       }},
      {"directive_ttl", time([](Settings& s, Duration d) { s.guard.steering.directive_ttl = d; })},
  };
  return kTable;
}

Error at(const Setting& setting, const std::string& why) {
  return {ErrorKind::kInvalid, fmt::format("{}: {}: {}", setting.where, setting.name, why)};
}

Result<void> apply(const Section& section, const std::map<std::string, Setter>& table, Settings& settings) {
  for (const Setting& setting : section.settings) {
    const auto found = table.find(setting.name);
    if (found == table.end()) {
      std::string names;
      for (const auto& [name, setter] : table) names += (names.empty() ? "" : ", ") + name;
      return tl::unexpected(at(setting, fmt::format("no such setting in {}; there are {}", section.name, names)));
    }
    if (auto done = found->second(settings, setting.value); !done)
      return tl::unexpected(at(setting, done.error().message));
  }
  return {};
}

/// Kafka's settings go in one by one, so that a refusal can name its line.
template <typename T>
Result<void> apply_kafka(const Section& section, T& client, Result<T> (*translate)(const client::KafkaSettings&, T),
                         Settings& settings) {
  for (const Setting& setting : section.settings) {
    if (setting.name == "bootstrap.servers" || setting.name == "metadata.broker.list") {
      if (auto fine = runtime::parse_addresses(setting.value); !fine)
        return tl::unexpected(at(setting, fine.error().message));
      settings.bootstrap_where = setting.where;
    }
    auto translated = translate({{setting.name, setting.value}}, client);
    if (!translated) return fail(ErrorKind::kInvalid, fmt::format("{}: {}", setting.where, translated.error().message));
    client = std::move(*translated);
  }
  return {};
}

/// Tried on a broker's configuration that is then thrown away, so that a mistake is found before anything starts.
Result<void> apply_broker(const Section& section, Settings& settings) {
  broker::BrokerConfig tried;
  if (auto done = set_broker_defaults(tried); !done) return done;
  for (const Setting& setting : section.settings) {
    if (setting.name == "listeners" || setting.name == "log.dirs" || setting.name == "log.dir")
      return tl::unexpected(at(setting, "weir up sets it: see its --listen and --data"));
    if (auto done = tried.set(setting.name, setting.value, setting.where); !done) return done;
    settings.broker.push_back(setting);
  }
  if (auto done = tried.finish(); !done)
    return fail(done.error().kind, fmt::format("{}: {}: {}", section.where, section.name, done.error().message));
  return {};
}

/// Topics that must differ do.
Result<void> check_topics(const std::vector<Section>& sections, const Settings& settings) {
  const auto place = [&](std::string_view section, std::string_view name) -> const Setting* {
    for (const Section& s : sections)
      for (const Setting& setting : s.settings)
        if (s.name == section && setting.name == name) return &setting;
    return nullptr;
  };
  const std::string& topic = settings.agent.topic;
  const std::string& urgent = settings.agent.urgent_topic;
  const std::string& dead = settings.sink.dead_letter_topic;
  const Setting* wrong = nullptr;
  if (topic == urgent)
    wrong = place("agent", "urgent_topic") ? place("agent", "urgent_topic") : place("agent", "topic");
  if (dead == topic || dead == urgent) {
    wrong = place("sink", "dead_letter_topic");
    if (!wrong) wrong = place("agent", dead == topic ? "topic" : "urgent_topic");
  }
  if (!wrong) return {};
  return tl::unexpected(at(*wrong, fmt::format("{} is another topic's name: topic, urgent_topic and dead_letter_topic "
                                               "must differ",
                                               wrong->value)));
}

/// What is wrong with several of the sink's settings together, with the place of one that the error names, or of one
/// whose value it tells.
Error where_it_is_set(const std::vector<Section>& sections, Error error) {
  const auto find = [&](auto is_it) -> const Setting* {
    for (const Section& section : sections) {
      if (section.name != "sink" && section.name != "consumer" && section.name != "kafka") continue;
      for (const Setting& setting : section.settings)
        if (is_it(setting)) return &setting;
    }
    return nullptr;
  };
  const auto tells = [&](const std::string& text) { return error.message.find(text) != std::string::npos; };
  if (const Setting* named = find([&](const Setting& s) { return tells(s.name); })) {
    error.message = fmt::format("{}: {}", named->where, error.message);
  } else if (const Setting* told = find([&](const Setting& s) { return s.value.size() > 2 && tells(s.value); })) {
    return at(*told, error.message);
  }
  return error;
}

Result<void> apply_section(const Section& section, Settings& settings) {
  if (section.name == "kafka") {
    if (auto done = apply_kafka(section, settings.producer, &client::producer_settings, settings); !done) return done;
    return apply_kafka(section, settings.sink.consumer, &client::consumer_settings, settings);
  }
  if (section.name == "producer") return apply_kafka(section, settings.producer, &client::producer_settings, settings);
  if (section.name == "consumer")
    return apply_kafka(section, settings.sink.consumer, &client::consumer_settings, settings);
  if (section.name == "limits") return apply(section, limits(), settings);
  if (section.name == "agent") return apply(section, agent_table(), settings);
  if (section.name == "sink") return apply(section, sink_table(), settings);
  if (section.name == "guard") return apply(section, guard_table(), settings);
  if (section.name == "broker") return apply_broker(section, settings);
  return fail(
      ErrorKind::kInvalid,
      fmt::format("{}: no such section: {}; there are kafka, producer, consumer, limits, agent, sink, guard, broker",
                  section.where, section.name));
}

}  // namespace

void Settings::set_bootstrap(const std::string& address) {
  producer.bootstrap_servers = address;
  sink.consumer.bootstrap_servers = address;
  guard.admin.bootstrap = address;
}

ProducerSettings Settings::producer_of_agent() const {
  ProducerSettings settings = producer;
  const Bytes readers = agent::Agent::reader_memory(agent);
  settings.buffer_memory = std::max<Bytes>(settings.buffer_memory, readers + kMiB) - readers;
  return settings;
}

Settings default_settings() {
  Settings settings;
  settings.producer.client_id = "weir-agent";
  return settings;
}

Result<Settings> read_settings(const std::vector<Section>& sections) {
  Settings settings = default_settings();
  for (const Section& section : sections)
    if (auto done = apply_section(section, settings); !done) return tl::unexpected(done.error());
  if (auto done = check_topics(sections, settings); !done) return tl::unexpected(done.error());
  // The guard looks where the sink reads.
  const std::string& reads = settings.sink.consumer.bootstrap_servers;
  settings.guard.admin.bootstrap =
      reads != ConsumerSettings().bootstrap_servers ? reads : settings.producer.bootstrap_servers;
  settings.sink.consumer.topics = {settings.agent.urgent_topic, settings.agent.topic};
  settings.sink.consumer.first_topics = {settings.agent.urgent_topic};
  if (auto fine = sink::check(settings.sink); !fine) return tl::unexpected(where_it_is_set(sections, fine.error()));
  // Nor need it guess what the sink does.
  settings.guard.topics = settings.sink.consumer.topics;
  if (settings.sink.consumer.auto_offset_reset == OffsetReset::kEarliest)
    settings.guard.lag.earliest_groups.insert(settings.sink.consumer.group_id);
  return settings;
}

Result<Settings> load_settings(const std::string& path) {
  if (path.empty()) return read_settings({});
  auto sections = load_config(path);
  if (!sections) return tl::unexpected(sections.error());
  return read_settings(*sections);
}

Result<void> check_topic_name(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
  if (plain && !name.empty() && name.size() <= 249 && name != "." && name != "..") return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("'{}' is not a topic's name: 1 to 249 letters, digits, '.', '_' and '-'", name));
}

Result<void> set_broker_defaults(broker::BrokerConfig& config) {
  if (auto done = config.set("group.initial.rebalance.delay.ms=0"); !done) return done;
  return config.set("weir.replication.factor.clamp=true");
}

Result<void> set_http_address(http::ServerSettings& http, std::string_view text) {
  if (auto port = parse_integer(text, 0, 65535)) {
    http.port = static_cast<std::uint16_t>(*port);
    return {};
  }
  auto address = runtime::parse_address(text);
  if (!address || (address->host != "localhost" && !runtime::is_ip_number(address->host)))
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' is not an address to listen on; write it like 127.0.0.1:8080", text));
  http.host = address->host;
  http.port = address->port;
  return {};
}

}  // namespace weir::pipeline
