#include "broker/broker_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "broker/properties.h"
#include "broker/settings.h"
#include "runtime/file.h"

namespace weir::broker {
namespace {

constexpr Bytes kMaxFile = kMiB;

std::string_view trim(std::string_view s) {
  const auto first = s.find_first_not_of(" \t\r\f");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r\f") - first + 1);
}

/// What a file is that was taken for a server.properties; nothing when it may be one.
std::string_view not_properties(std::string_view text, std::string_view file) {
  const auto binary = [](unsigned char c) { return c < 0x20 && c != '\t' && c != '\r' && c != '\n' && c != '\f'; };
  if (std::ranges::any_of(text, binary)) return "is not a text file; it must be";
  if (file.ends_with(".yaml") || file.ends_with(".yml"))
    return "is YAML, which weir up, agent, sink and guard read; here it must be";
  // A name with nothing after the colon, or a list: no setting looks like that.
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    const auto line = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (line.empty() || line.front() == '#' || line.front() == '!') continue;
    const bool name_only = line.ends_with(':') && line.find_first_of("= \t") == std::string_view::npos;
    if (name_only || line.starts_with("---") || line.starts_with("- ")) {
      return "looks like YAML, which weir up, agent, sink and guard read; here it must be";
    }
  }
  return {};
}

std::string display(const std::optional<HostPort>& address) {
  return address ? fmt::format("PLAINTEXT://{}:{}", address->host, address->port) : "";
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const std::string_view whole = text;
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos) {
    const auto name = text.substr(0, scheme);
    if (name == "SSL" || name.starts_with("SASL_")) {
      return fail(ErrorKind::kUnsupported, fmt::format("'{}': only PLAINTEXT listeners are served", whole));
    }
    text.remove_prefix(scheme + 3);
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return fail(ErrorKind::kInvalid, fmt::format("'{}' is not HOST:PORT", whole));
  const auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return fail(ErrorKind::kInvalid, fmt::format("'{}': the port must be a number from 0 to 65535", whole));
  }
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return HostPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

BrokerConfig::BrokerConfig() { refresh(); }

Result<void> BrokerConfig::load(const std::string& path) {
  const auto status = runtime::posix_file_system().status(path);
  if (status && status->type == runtime::FileType::kDirectory) {
    return fail(ErrorKind::kInvalid, fmt::format("{}: is a directory; --config names a server.properties file", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorKind::kNotFound, fmt::format("{}: cannot be read; check the path of --config", path));
  std::string content(kMaxFile + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return fail(ErrorKind::kIo, fmt::format("{}: cannot be read", path));
  if (content.size() > kMaxFile)
    return fail(ErrorKind::kInvalid, fmt::format("{}: larger than 1 MiB, which no config file is", path));
  if (const auto what = not_properties(content, path); !what.empty()) {
    return fail(ErrorKind::kInvalid, fmt::format("{}: {} a server.properties: one name=value a line", path, what));
  }
  return parse(content, path);
}

Result<void> BrokerConfig::parse(std::string_view text, std::string_view file) {
  const auto properties = parse_properties(text);
  if (!properties) return fail(ErrorKind::kInvalid, fmt::format("{}:{}", file, properties.error().message));
  for (const Property& property : *properties) {
    auto done = assign(property.name, trim(property.value), fmt::format("{}:{}", file, property.line));
    if (!done) return done;
  }
  return {};
}

Result<void> BrokerConfig::set(std::string_view assignment) {
  const auto split = assignment.find('=');
  if (split == std::string_view::npos || split == 0) {
    return fail(ErrorKind::kInvalid, fmt::format("--set {}: is not name=value", assignment));
  }
  return assign(trim(assignment.substr(0, split)), trim(assignment.substr(split + 1)), "--set");
}

Result<void> BrokerConfig::assign(std::string_view name, std::string_view value, std::string_view where) {
  const Setting* setting = find_setting(name);
  if (setting == nullptr) {
    const auto why = noted_setting(name);
    notices_.push_back(why.empty() ? fmt::format("{}: {} is not a setting of the broker and is ignored", where, name)
                                   : fmt::format("{}: {} is accepted and has no effect: {}", where, name, why));
    return {};
  }
  if (auto ok = check_value(*setting, value); !ok) {
    return fail(ok.error().kind, fmt::format("{}: {}: {}", where, name, ok.error().message));
  }
  static_[std::string(name)] = std::string(value);
  refresh();
  return {};
}

void BrokerConfig::refresh() {
  const auto in_force = [&](std::string_view name) -> std::string_view {
    if (const auto it = dynamic_.find(name); it != dynamic_.end()) return it->second;
    if (const auto it = static_.find(name); it != static_.end()) return it->second;
    return find_setting(name)->default_value;
  };
  for (const Setting& setting : settings()) {
    const auto value = in_force(setting.name);
    if (const auto* flag = std::get_if<bool BrokerConfig::*>(&setting.member))
      this->** flag = parse_boolean(value).value();
    if (const auto* number = std::get_if<std::int32_t BrokerConfig::*>(&setting.member)) {
      this->** number = static_cast<std::int32_t>(parse_integer(value).value());
    }
    if (const auto* number = std::get_if<std::int64_t BrokerConfig::*>(&setting.member))
      this->** number = parse_integer(value).value();
    if (const auto* text = std::get_if<std::string BrokerConfig::*>(&setting.member))
      this->** text = std::string(value);
  }
  const auto milliseconds =
      [&](std::initializer_list<std::pair<std::string_view, std::int64_t>> names) -> std::int64_t {
    for (const auto& [name, unit] : names) {
      if (const auto value = in_force(name); !value.empty()) {
        const auto number = parse_integer(value).value();
        return number < 0 ? -1 : number * unit;
      }
    }
    return -1;
  };
  log_retention_ms =
      milliseconds({{"log.retention.ms", 1}, {"log.retention.minutes", 60000}, {"log.retention.hours", 3600000}});
  log_roll_ms = milliseconds({{"log.roll.ms", 1}, {"log.roll.hours", 3600000}});
  log_dir = std::string(in_force("log.dirs").empty() ? in_force("log.dir") : in_force("log.dirs"));
  if (!static_.contains("node.id") && static_.contains("broker.id")) {
    node_id = static_cast<std::int32_t>(parse_integer(static_.find("broker.id")->second).value());
  }
}

Result<void> BrokerConfig::finish() {
  const auto text_of = [&](std::string_view name) {
    const auto it = static_.find(name);
    return it == static_.end() ? std::string(find_setting(name)->default_value) : it->second;
  };
  listeners.clear();
  const std::string listen = text_of("listeners");
  for (std::string_view rest = listen; !rest.empty();) {
    const auto comma = rest.find(',');
    const auto item = trim(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (item.empty() || item.starts_with("CONTROLLER://")) continue;
    auto address = parse_host_port(item);
    if (!address) return fail(address.error().kind, fmt::format("listeners: {}", address.error().message));
    listeners.push_back(*address);
  }
  if (listeners.empty())
    return fail(ErrorKind::kInvalid, "listeners: names no address to listen on; say PLAINTEXT://HOST:PORT");
  if (listeners.size() > 1) notices_.push_back("listeners: only the first listener is served");
  advertised.reset();
  if (const auto text = text_of("advertised.listeners"); !text.empty()) {
    auto address = parse_host_port(trim(std::string_view(text).substr(0, text.find(','))));
    if (!address) return fail(address.error().kind, fmt::format("advertised.listeners: {}", address.error().message));
    advertised = *address;
  }
  if (log_dir.find(',') != std::string::npos) {
    return fail(ErrorKind::kUnsupported, fmt::format("log.dirs: '{}' names several directories; name one", log_dir));
  }
  for (auto [name, member] :
       {std::pair{"default.replication.factor", &BrokerConfig::default_replication_factor},
        std::pair{"offsets.topic.replication.factor", &BrokerConfig::offsets_topic_replication_factor},
        std::pair{"min.insync.replicas", &BrokerConfig::min_insync_replicas}}) {
    if (this->*member <= 1) continue;
    if (replication_factor_clamp) {
      notices_.push_back(fmt::format("{}={} is taken as 1: this broker is a single node", name, this->*member));
      static_[name] = "1";
    } else if (std::string_view(name).starts_with("offsets")) {
      return fail(ErrorKind::kInvalid, fmt::format("{}={} is larger than the one broker there is; set it to 1 or set "
                                                   "weir.replication.factor.clamp=true",
                                                   name, this->*member));
    }
  }
  refresh();
  return {};
}

Result<void> BrokerConfig::check_alter(std::string_view name, std::optional<std::string_view> value) const {
  const Setting* setting = find_setting(name);
  if (setting == nullptr) return fail(ErrorKind::kNotFound, fmt::format("{} is not a setting of the broker", name));
  if (!setting->dynamic) {
    return fail(ErrorKind::kUnsupported, fmt::format("Cannot update these configs dynamically: Set({})", name));
  }
  if (!value) return {};
  if (auto ok = check_value(*setting, *value); !ok) {
    return fail(ok.error().kind,
                fmt::format("Invalid value {} for configuration {}: {}", *value, name, ok.error().message));
  }
  return {};
}

Result<void> BrokerConfig::alter(std::string_view name, std::optional<std::string_view> value) {
  if (auto ok = check_alter(name, value); !ok) return ok;
  if (value) {
    dynamic_[std::string(name)] = std::string(*value);
  } else if (const auto it = dynamic_.find(name); it != dynamic_.end()) {
    dynamic_.erase(it);
  }
  refresh();
  return {};
}

std::optional<BrokerConfig::Described> BrokerConfig::describe(std::string_view name) const {
  const Setting* setting = find_setting(name);
  if (setting == nullptr) return std::nullopt;
  Described described{.name = setting->name,
                      .value = std::string(setting->default_value),
                      .type = setting->type,
                      .read_only = !setting->dynamic,
                      .default_value = std::string(setting->default_value),
                      .documentation = setting->documentation};
  // What other settings decide is shown as the value in force.
  if (setting->name == "log.retention.ms") described.value = std::to_string(log_retention_ms);
  if (setting->name == "log.roll.ms") described.value = std::to_string(log_roll_ms);
  if (setting->name == "advertised.listeners") described.value = display(advertised);
  if (const auto it = static_.find(name); it != static_.end()) {
    described.static_value = described.value = it->second;
    described.source = Source::kStatic;
  }
  if (const auto it = dynamic_.find(name); it != dynamic_.end()) {
    described.dynamic_value = described.value = it->second;
    described.source = Source::kDynamic;
  }
  return described;
}

std::vector<BrokerConfig::Described> BrokerConfig::describe() const {
  std::vector<Described> all;
  for (const Setting& setting : settings()) all.push_back(*describe(setting.name));
  std::ranges::sort(all, {}, &Described::name);
  return all;
}

}  // namespace weir::broker
