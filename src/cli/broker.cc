// weir broker: the embedded broker by itself.
#include "broker/broker.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "runtime/event_loop.h"
#include "runtime/process.h"
#include "runtime/signals.h"

namespace weir::cli {
namespace {

struct Options {
  std::string data;
  std::string listen;
  std::string config;
  std::vector<std::string> settings;
};

Result<broker::BrokerConfig> settings_of(const Options& options) {
  broker::BrokerConfig config;
  if (!options.config.empty()) {
    if (auto done = config.load(options.config); !done) return tl::unexpected(done.error());
  }
  // What is said on the command line goes before the file.
  std::vector<std::string> settings = options.settings;
  if (!options.data.empty()) settings.push_back("log.dirs=" + options.data);
  if (!options.listen.empty()) {
    if (auto address = broker::parse_host_port(options.listen); !address) {
      return fail(address.error().kind, "--listen: " + address.error().message + "; for example 127.0.0.1:9092");
    }
    const bool named = options.listen.find("://") != std::string::npos;
    settings.push_back("listeners=" + (named ? options.listen : "PLAINTEXT://" + options.listen));
  }
  for (const std::string& setting : settings) {
    if (auto done = config.set(setting); !done) return tl::unexpected(done.error());
  }
  if (config.log_dir.empty()) {
    const auto data = runtime::state_directory() / "broker";
    if (auto done = config.set("log.dirs=" + data.string()); !done) return tl::unexpected(done.error());
  }
  return config;
}

void run(const Options& options, Exit& exit) {
  const MonoTime start = system_clock().now().mono;
  auto config = settings_of(options);
  if (!config) return exit.fail(config.error(), ExitCode::kUsage);
  if (auto done = config->finish(); !done) return exit.fail(done.error(), ExitCode::kUsage);

  runtime::EventLoop loop("weir");
  runtime::SignalWatch signals(loop, [&](int, int) { loop.stop(); });
  auto started = broker::Broker::start(std::move(*config));
  if (!started) return exit.fail(started.error());
  std::printf("ready %s in %.1f ms\n", (*started)->bootstrap().c_str(), to_ms(system_clock().now().mono - start));
  std::fflush(stdout);
  loop.run();
  if (auto done = (*started)->stop(); !done) exit.fail(done.error());
}

}  // namespace

void add_broker(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "broker", "Runs the embedded single-node broker; prints `ready HOST:PORT in N ms` to stdout once it serves");
  add_text(*command, "--data", options->data, "Where the logs are (log.dirs)");
  add_text(*command, "--listen", options->listen, "HOST:PORT to listen on (listeners); port 0 takes a free one");
  add_text(*command, "--config", options->config, "A server.properties with Kafka's names");
  command->add_option("--set", options->settings, "One setting, name=value; may be repeated")->allow_extra_args(false);
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
