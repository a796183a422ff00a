// weir lag: how far consumer groups are behind, on any Kafka.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "guard/cluster_source.h"
#include "guard/lag_monitor.h"
#include "guard/report.h"
#include "pipeline/settings.h"
#include "runtime/event_loop.h"
#include "runtime/process.h"
#include "runtime/signals.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::string bootstrap;
  std::string config;
  std::vector<std::string> groups;
  std::string missing_commit = "unknown";
  std::string interval = "1s";
  std::string timeout = "5s";
  bool watch = false;
  bool json = false;
};

struct Measuring {
  std::unique_ptr<guard::ClusterSource> source;
  std::vector<std::string> groups;
  guard::LagMonitor monitor{{}};
  std::string address;

  Result<std::shared_ptr<const guard::LagSnapshot>> once() {
    const MonoTime began = system_clock().now().mono;
    const auto sample = guard::take_sample(*source, groups);
    if (!sample) return tl::unexpected(sample.error());
    return monitor.update(began, system_clock().now(), *sample);
  }
};

void print(const guard::LagSnapshot& snapshot, bool json) {
  if (!json && snapshot.groups.empty()) return;
  const std::string text =
      json ? guard::lag_to_json(snapshot, system_clock().now().mono) + "\n" : guard::lag_to_table(snapshot);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void run_once(Measuring& measuring, const Options& options, Exit& exit) {
  const auto snapshot = measuring.once();
  if (!snapshot) return exit.fail(snapshot.error());
  print(**snapshot, options.json);
  if ((*snapshot)->groups.empty() && measuring.groups.empty())
    std::fprintf(stderr, "no groups on %s\n", measuring.address.c_str());
  // What was found is printed all the same; what could not be asked is a failure.
  for (const auto& error : (*snapshot)->errors) exit.fail(error);
  if (!(*snapshot)->complete) return;
  for (const auto& group : measuring.groups) {
    if (!(*snapshot)->groups.contains(group)) exit.fail("there is no group " + group + " on " + measuring.address);
  }
}

void watch(Measuring& measuring, const Options& options, Duration interval, Exit& exit) {
  const bool terminal = runtime::is_terminal(1);
  runtime::EventLoop loop("lag");
  runtime::SignalWatch signals(loop, [&](int, int) { loop.stop(); });
  std::function<void()> tick = [&] {
    const auto snapshot = measuring.once();
    if (snapshot) {
      if (terminal && !options.json) std::fputs("\x1b[H\x1b[2J", stdout);
      print(**snapshot, options.json);
      for (const auto& error : (*snapshot)->errors) std::fprintf(stderr, "weir: %s\n", error.c_str());
    } else {  // It may come back.
      std::fprintf(stderr, "weir: %s\n", snapshot.error().message.c_str());
    }
    if (std::ferror(stdout) != 0) return loop.stop();
    loop.call_after(interval, tick);
  };
  loop.post(tick);
  loop.run();
  if (std::ferror(stdout) != 0) exit.fail("cannot write the output");
}

void run(const Options& options, Exit& exit) {
  auto settings = pipeline::load_settings(options.config);
  if (!settings) return exit.fail(settings.error(), ExitCode::kUsage);
  const auto policy = guard::parse_missing_commit(options.missing_commit);
  if (!policy) return exit.fail("--missing-commit: " + policy.error().message, ExitCode::kUsage);
  Duration interval{};
  Duration timeout{};
  for (const auto& done :
       {check_bootstrap(options.bootstrap), read_time("--interval", options.interval, 100ms, 24h, interval),
        read_time("--timeout", options.timeout, 1ms, 1h, timeout)}) {
    if (!done) return exit.fail(done.error(), ExitCode::kUsage);
  }

  client::AdminSettings admin = settings->guard.admin;
  if (!options.bootstrap.empty()) admin.bootstrap = options.bootstrap;
  admin.client_id = "weir-lag";
  admin.timeout = timeout;
  Measuring measuring{guard::kafka_source(admin), options.groups,
                      guard::LagMonitor(guard::LagMonitorSettings{.missing_commit = *policy}), admin.bootstrap};
  if (options.watch) return watch(measuring, options, interval, exit);
  run_once(measuring, options, exit);
}

}  // namespace

void add_lag(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("lag", "How far consumer groups are behind, on any Kafka");
  add_text(*command, "--bootstrap", options->bootstrap, "HOST:PORT,... of the cluster (default: 127.0.0.1:9092)");
  add_texts(*command, "--group", options->groups, "Only this group; may be repeated");
  command->add_flag("--watch", options->watch, "Measure again and again, until interrupted; lag in time needs this");
  add_text(*command, "--interval", options->interval, "Time between two measurements of --watch, at least 100ms")
      ->capture_default_str();
  command
      ->add_option("--missing-commit", options->missing_commit,
                   "What a partition without a commit counts as: unknown, earliest (all of it) or latest (nothing)")
      ->capture_default_str();
  add_text(*command, "--timeout", options->timeout, "For each question to the cluster")->capture_default_str();
  add_text(*command, "--config", options->config, "A config file; see examples/");
  command->add_flag("--json", options->json, "One line of JSON for each measurement");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
