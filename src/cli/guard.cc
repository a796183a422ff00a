// weir guard: measures lag on any Kafka, steers weir's producers, serves the API, the page and the metrics.
#include "guard/guard.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "pipeline/settings.h"
#include "runtime/event_loop.h"
#include "runtime/signals.h"

namespace weir::cli {
namespace {

struct Options {
  std::string bootstrap;
  std::string listen;
  std::string config;
  std::vector<std::string> steer;
  std::vector<std::string> measure;
};

Result<guard::GuardSettings> settings_of(const Options& options) {
  auto parts = pipeline::load_settings(options.config);
  if (!parts) return tl::unexpected(parts.error());
  guard::GuardSettings settings = parts->guard;
  if (auto done = check_bootstrap(options.bootstrap); !done) return tl::unexpected(done.error());
  if (!options.bootstrap.empty()) settings.admin.bootstrap = options.bootstrap;
  if (!options.listen.empty()) {
    if (auto done = pipeline::set_http_address(settings.http, options.listen); !done) {
      return fail(ErrorKind::kInvalid, "--listen: " + done.error().message);
    }
  }
  settings.measure.insert(settings.measure.end(), options.measure.begin(), options.measure.end());
  auto& groups = settings.steering.groups;
  groups.insert(groups.end(), options.steer.begin(), options.steer.end());
  if (groups.empty()) groups.push_back(parts->sink.consumer.group_id);
  // A group that steers must be measured.
  if (!settings.measure.empty()) settings.measure.insert(settings.measure.end(), groups.begin(), groups.end());
  return settings;
}

void run(const Options& options, Exit& exit) {
  auto settings = settings_of(options);
  if (!settings) return exit.fail(settings.error(), ExitCode::kUsage);
  runtime::EventLoop loop("weir");
  runtime::SignalWatch signals(loop, [&](int, int) { loop.stop(); });
  Registry metrics;
  guard::Guard guard(*settings, metrics);
  const auto address = guard.start();
  if (!address) return exit.fail(address.error());
  std::fprintf(stderr, "ready http://%s/, measuring %s\n", address->text().c_str(), settings->admin.bootstrap.c_str());
  loop.run();
  guard.stop();
}

}  // namespace

void add_guard(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("guard", "Measures lag, steers weir's producers, serves the API and the page");
  add_text(*command, "--bootstrap", options->bootstrap, "HOST:PORT,... of the cluster (default: 127.0.0.1:9092)");
  add_text(*command, "--listen", options->listen,
           "Where the page, the API and the metrics are (default: 127.0.0.1:8080)");
  add_texts(*command, "--steer", options->steer,
            "A group whose lag limits the producers of its topics; may be repeated (default: weir-sink)");
  add_texts(*command, "--measure", options->measure, "Measure only this group; may be repeated (default: all)");
  add_text(*command, "--config", options->config, "A config file; see examples/");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
