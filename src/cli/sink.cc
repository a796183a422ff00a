// weir sink: Kafka into the store, as a process of its own.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/metrics_page.h"
#include "cli/options.h"
#include "pipeline/report.h"
#include "pipeline/settings.h"
#include "runtime/event_loop.h"
#include "runtime/file.h"
#include "runtime/process.h"
#include "runtime/signals.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::string bootstrap;
  std::string data;
  std::string config;
  std::string http;
  double rate = 0;
  std::string drain;
  bool json = false;
  bool show_settings = false;
};

struct Run {
  sink::SinkSettings settings;
  std::optional<http::ServerSettings> http = {};
  Duration drain = defaults::kDrainDeadline;
};

Result<Run> run_of(const Options& options) {
  auto parts = pipeline::load_settings(options.config);
  if (!parts) return tl::unexpected(parts.error());
  if (auto fine = check_bootstrap(options.bootstrap); !fine) return tl::unexpected(fine.error());
  if (!options.bootstrap.empty()) parts->set_bootstrap(options.bootstrap);
  Run run{.settings = std::move(parts->sink)};
  const std::filesystem::path data =
      options.data.empty() ? runtime::state_directory() : std::filesystem::absolute(options.data);
  if (auto made = runtime::posix_file_system().make_directories(data); !made) return tl::unexpected(made.error());
  if (run.settings.database.is_relative()) run.settings.database = data / run.settings.database;
  if (options.rate > 0) run.settings.records_per_second = options.rate;
  if (auto done = read_time("--drain", options.drain, Duration::zero(), 24h, run.drain); !done)
    return tl::unexpected(done.error());
  if (!options.http.empty()) {
    auto http = read_http(options.http);
    if (!http) return tl::unexpected(http.error());
    run.http = std::move(*http);
  }
  return run;
}

void run(const Options& options, Exit& exit) {
  auto configured = run_of(options);
  if (!configured) return exit.fail(configured.error(), ExitCode::kUsage);
  if (options.show_settings) {
    auto consumer = Consumer::open(configured->settings.consumer);
    if (!consumer) return exit.fail(consumer.error(), ExitCode::kUsage);
    return print_settings("consumer", (*consumer)->in_force());
  }
  runtime::EventLoop loop("weir");
  const Duration drain = configured->drain;
  runtime::SignalWatch signals(loop, [&](int, int count) {
    if (count == 1) {
      std::fprintf(stderr, "storing what was fetched, %s at most; twice more ends at once\n",
                   format_duration(drain).c_str());
    }
    loop.stop();
  });
  Registry metrics;
  auto sink = sink::Sink::open(configured->settings);
  if (!sink) return exit.fail(sink.error());
  std::fprintf(stderr, "ready: %s into %s\n", configured->settings.consumer.bootstrap_servers.c_str(),
               configured->settings.database.c_str());

  std::unique_ptr<http::Server> page;
  if (configured->http) {
    (*sink)->expose(metrics);
    auto served = serve_metrics(*configured->http, metrics, [&sink]() -> Result<void> {
      if (const auto stats = (*sink)->stats(); stats.failed) return tl::unexpected(*stats.failed);
      return {};
    });
    if (!served) return exit.fail(served.error());
    page = std::move(*served);
  }

  std::function<void()> look = [&] {
    if ((*sink)->stats().failed) return loop.stop();
    loop.call_after(100ms, look);
  };
  look();
  loop.run();

  page.reset();
  (*sink)->stop(drain);
  const sink::SinkStats stats = (*sink)->stats();
  if (options.json) {
    std::printf("%s\n", pipeline::to_json(stats).c_str());
  } else {
    std::fprintf(stderr, "stored %llu, duplicates %llu, dead letters %llu; fetched and not stored %llu\n",
                 static_cast<unsigned long long>(stats.stored), static_cast<unsigned long long>(stats.duplicates),
                 static_cast<unsigned long long>(stats.dead_lettered),
                 static_cast<unsigned long long>(stats.in_memory));
  }
  if (stats.failed) exit.fail(*stats.failed);
}

}  // namespace

void add_sink(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sink", "Reads the logs from Kafka and puts each of them into the store once");
  add_text(*command, "--bootstrap", options->bootstrap, "The Kafka to read from (HOST:PORT,...)");
  add_text(*command, "--data", options->data, "Holds logs.db (default: weir below the XDG state home)");
  add_text(*command, "--config", options->config, "A config file; see examples/");
  add_text(*command, "--http", options->http,
           "Serve /metrics and /healthz there, like 127.0.0.1:9465 (default: nowhere)");
  add_rate(*command, "--sink-rate", options->rate, "Records a second the store takes, to watch backpressure work");
  add_text(*command, "--drain", options->drain, "How long to store what was fetched at the end (default: 20s)");
  command->add_flag("--json", options->json, "Print one line of JSON at the end");
  command->add_flag("--show-settings", options->show_settings, "Print the Kafka settings in force and end");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
