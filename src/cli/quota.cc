// weir quota: the client quotas of any Kafka.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "client/admin.h"

namespace weir::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string bootstrap = "127.0.0.1:9092";
  std::string client_id;
  std::string user;
  bool default_client = false;
  bool default_user = false;
  std::vector<std::string> values;
  bool json = false;
};

client::QuotaEntity entity_of(const Options& options) {
  client::QuotaEntity entity;
  if (!options.client_id.empty()) entity["client-id"] = options.client_id;
  if (options.default_client) entity["client-id"] = "";
  if (!options.user.empty()) entity["user"] = options.user;
  if (options.default_user) entity["user"] = "";
  return entity;
}

std::string name_of(const client::QuotaEntity& entity) {
  std::string text;
  for (const auto& [type, name] : entity) {
    const std::string_view separator = text.empty() ? "" : ", ";
    text += name.empty() ? fmt::format("{}default {}", separator, type) : fmt::format("{}{} {}", separator, type, name);
  }
  return text;
}

json to_json(const client::QuotaEntry& entry) {
  json entity = json::object();
  for (const auto& [type, name] : entry.entity) entity[type] = name.empty() ? json(nullptr) : json(name);
  return {{"entity", entity}, {"values", entry.values}};
}

void print(const json& value) {
  std::printf("%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

/// Kafka's quotas of clients and users; those of addresses cannot be named here.
Result<void> check_name(const std::string& name) {
  for (const char* known :
       {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"})
    if (name == known) return {};
  return fail(ErrorKind::kInvalid, name +
                                       ": there is no such quota; there are producer_byte_rate, consumer_byte_rate, "
                                       "request_percentage, controller_mutation_rate");
}

/// "producer_byte_rate=10MiB": bytes may have a unit, everything else is a number.
Result<std::pair<std::string, double>> parse_value(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    return fail(ErrorKind::kInvalid, "\"" + text + "\" is not NAME=VALUE, as producer_byte_rate=10MiB");
  }
  const std::string name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (auto fine = check_name(name); !fine) return tl::unexpected(fine.error());
  const bool bytes = name.ends_with("_byte_rate");
  char* end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  bool understood = *end == '\0' && std::isfinite(number);
  if (const auto size = parse_size(value); bytes && size) {
    number = static_cast<double>(*size);
    understood = true;
  }
  if (understood && bytes && number != std::floor(number)) {
    return fail(ErrorKind::kInvalid, name + ": \"" + value + "\" is not a whole number of bytes");
  }
  if (!understood || !(number > 0)) {
    return fail(ErrorKind::kInvalid,
                name + ": \"" + value + "\" is not a number above 0; to remove a quota, use unset");
  }
  return std::pair(name, number);
}

client::Admin connect(const Options& options) {
  return client::Admin({.bootstrap = options.bootstrap, .client_id = "weir-quota"});
}

void get(const Options& options, Exit& exit) {
  if (auto fine = check_bootstrap(options.bootstrap); !fine) return exit.fail(fine.error(), ExitCode::kUsage);
  auto admin = connect(options);
  const auto entries = admin.quotas(entity_of(options));
  if (!entries) return exit.fail(entries.error());
  if (options.json) {
    json list = json::array();
    for (const auto& entry : *entries) list.push_back(to_json(entry));
    return print({{"quotas", list}});
  }
  for (const auto& entry : *entries) {
    for (const auto& [name, value] : entry.values) {
      std::printf("%s: %s=%.15g\n", name_of(entry.entity).c_str(), name.c_str(), value);
    }
  }
  if (entries->empty()) std::fprintf(stderr, "no quotas\n");
}

/// `what`: "set" or "unset", for messages. Says what was changed.
void change(const Options& options, const client::QuotaChanges& changes, const char* what, Exit& exit) {
  if (auto fine = check_bootstrap(options.bootstrap); !fine) return exit.fail(fine.error(), ExitCode::kUsage);
  const client::QuotaEntity entity = entity_of(options);
  if (entity.empty()) {
    return exit.fail("whose quota? Say --client-id NAME, --default-client, --user NAME or --default-user",
                     ExitCode::kUsage);
  }
  auto admin = connect(options);
  // To remove what is not there is no failure, but nobody should think it was.
  std::set<std::string> set_before;
  if (std::ranges::any_of(changes, [](const auto& change) { return !change.second; })) {
    const auto before = admin.quotas(entity);
    if (!before) return exit.fail(before.error());
    for (const auto& entry : *before) {
      if (entry.entity != entity) continue;
      for (const auto& [name, value] : entry.values) set_before.insert(name);
    }
  }
  if (auto done = admin.alter_quotas(entity, changes); !done) return exit.fail(done.error());
  json values = json::object();
  for (const auto& [name, value] : changes) {
    values[name] = value ? json(*value) : json(nullptr);
    if (!options.json && !value && !set_before.contains(name)) {
      std::printf("%s: %s was not set\n", name_of(entity).c_str(), name.c_str());
    } else if (!options.json) {
      std::printf("%s: %s %s", name_of(entity).c_str(), what, name.c_str());
      std::printf(value ? "=%.15g\n" : "\n", value.value_or(0));
    }
  }
  if (options.json) {
    json out = to_json({entity, {}});
    out["values"] = values;
    print(out);
  }
}

void set(const Options& options, Exit& exit) {
  client::QuotaChanges changes;
  for (const auto& text : options.values) {
    const auto value = parse_value(text);
    if (!value) return exit.fail(value.error(), ExitCode::kUsage);
    changes[value->first] = value->second;
  }
  change(options, changes, "set", exit);
}

void unset(const Options& options, Exit& exit) {
  client::QuotaChanges changes;
  for (const auto& name : options.values) {
    if (auto fine = check_name(name); !fine) return exit.fail(fine.error(), ExitCode::kUsage);
    changes[name] = std::nullopt;
  }
  change(options, changes, "unset", exit);
}

CLI::App* add_command(CLI::App& quota, const char* name, const char* text, const std::shared_ptr<Options>& options) {
  CLI::App* command = quota.add_subcommand(name, text);
  add_text(*command, "--bootstrap", options->bootstrap, "HOST:PORT,... of the cluster")->capture_default_str();
  auto* client = add_text(*command, "--client-id", options->client_id, "The quota of this client id");
  auto* user =
      add_text(*command, "--user", options->user, "The quota of this user; with a client id, of both together");
  command->add_flag("--default-client", options->default_client, "The default of client ids")->excludes(client);
  command->add_flag("--default-user", options->default_user, "The default of users")->excludes(user);
  command->add_flag("--json", options->json, "One line of JSON");
  return command;
}

}  // namespace

void add_quota(CLI::App& app, Exit& exit) {
  CLI::App* quota = app.add_subcommand("quota", "Client quotas, on any Kafka");
  quota->require_subcommand(1);
  auto options = std::make_shared<Options>();
  add_command(*quota, "get", "Shows quotas: all, or those of one client id or user", options)
      ->callback([options, &exit] { get(*options, exit); });
  CLI::App* setting = add_command(*quota, "set", "Sets quotas", options);
  setting
      ->add_option(
          "values", options->values,
          "NAME=VALUE: producer_byte_rate, consumer_byte_rate (bytes a second, like 10MiB), request_percentage, "
          "controller_mutation_rate")
      ->required();
  setting->callback([options, &exit] { set(*options, exit); });
  CLI::App* unsetting = add_command(*quota, "unset", "Removes quotas", options);
  unsetting->add_option("names", options->values, "NAME of the quota, like producer_byte_rate")->required();
  unsetting->callback([options, &exit] { unset(*options, exit); });
}

}  // namespace weir::cli
