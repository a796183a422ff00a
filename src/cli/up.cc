// weir up: the whole pipeline in one process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "pipeline/pipeline.h"
#include "runtime/event_loop.h"
#include "runtime/process.h"
#include "runtime/signals.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::string config;
  std::string data;
  std::string bootstrap;
  std::string listen = "127.0.0.1:9092";
  std::string http;
  InputOptions inputs;
  EndOptions end;
  double sink_rate = 0;
  bool show_settings = false;
};

struct Run {
  pipeline::PipelineSettings settings;
  End end;
};

Result<Run> run_of(const Options& options) {
  auto parts = pipeline::load_settings(options.config);
  if (!parts) return tl::unexpected(parts.error());
  auto end = read_end(options.end);
  if (!end) return tl::unexpected(end.error());
  Run run{
      .settings = {.parts = std::move(*parts), .data = {}, .bootstrap = options.bootstrap, .listen = options.listen},
      .end = *end};
  pipeline::Settings& settings = run.settings.parts;
  std::optional<runtime::Address> listen;
  for (const auto& done : {check_bootstrap(options.bootstrap), read_address("--listen", options.listen, listen),
                           read_inputs(options.inputs, run.end.run_for.has_value(), settings.agent)}) {
    if (!done) return tl::unexpected(done.error());
  }
  if (!options.http.empty()) {
    if (auto done = pipeline::set_http_address(settings.guard.http, options.http); !done)
      return fail(done.error().kind, "--http: " + done.error().message);
  }
  run.settings.data = options.data.empty() ? runtime::state_directory() : std::filesystem::absolute(options.data);
  if (options.sink_rate > 0) settings.sink.records_per_second = options.sink_rate;
  return run;
}

void show_settings(const pipeline::Settings& parts, Exit& exit) {
  // Opened without a broker: that is enough to see what the client library was given.
  auto producer = Producer::open(parts.producer);
  if (!producer) return exit.fail(producer.error(), ExitCode::kUsage);
  auto consumer = Consumer::open(parts.sink.consumer);
  if (!consumer) return exit.fail(consumer.error(), ExitCode::kUsage);
  print_settings("producer", (*producer)->in_force());
  print_settings("consumer", (*consumer)->in_force());
}

/// The whole report, for people: stdout carries data only with --json.
void print_summary(const pipeline::Report& r) {
  std::fprintf(stderr, "read %s, stored %s, duplicates %s, dead letters %s, left in the broker %s\n",
               pipeline::grouped(r.read).c_str(), pipeline::grouped(r.stored).c_str(),
               pipeline::grouped(r.duplicates).c_str(), pipeline::grouped(r.dead_lettered).c_str(),
               r.lag ? pipeline::grouped(static_cast<std::uint64_t>(*r.lag)).c_str() : "?");
}

void notice(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

void run(const Options& options, Exit& exit) {
  auto configured = run_of(options);
  if (!configured) return exit.fail(configured.error(), ExitCode::kUsage);
  const pipeline::Settings& parts = configured->settings.parts;
  if (options.show_settings) return show_settings(parts, exit);
  const MonoTime begin = system_clock().now().mono;
  const bool ends_by_itself = parts.agent.once || parts.agent.standard_input;
  const agent::AgentSettings agent = parts.agent;
  const Bytes max_request_size = parts.producer.max_request_size;
  if (options.bootstrap.empty() && !parts.bootstrap_where.empty()) {
    notice(parts.bootstrap_where +
           ": bootstrap.servers is not used: weir up starts its own broker; to use that one, say --bootstrap");
  }

  runtime::EventLoop loop("weir");
  StatusLine line;
  const End end = configured->end;
  runtime::SignalWatch signals(loop, [&](int, int count) {
    line.end();
    say_draining(end.drain, count);
    loop.stop();
  });
  auto started = pipeline::Pipeline::start(std::move(configured->settings), notice);
  if (!started) return exit.fail(started.error());
  pipeline::Pipeline& running = **started;
  notice(fmt::format("ready in {:.0f} ms: broker {}, page {}", to_ms(system_clock().now().mono - begin),
                     running.broker_address(), running.page_address()));

  Patience patience(end.drain);
  std::string gave_up;
  std::function<void()> each_second = [&] {
    line.show(pipeline::status_line(running.tick(loop.now().mono)));
    loop.call_after(1s, each_second);
  };
  std::function<void()> look_for_end = [&] {
    if (running.failed() || (ends_by_itself && running.ended())) return loop.stop();
    if (ends_by_itself) gave_up = patience.given_up(loop.now().mono, running.stuck());
    if (!gave_up.empty()) return loop.stop();
    loop.call_after(20ms, look_for_end);
  };
  loop.call_after(1s, each_second);
  look_for_end();
  if (end.run_for) loop.call_after(*end.run_for, [&] { loop.stop(); });
  loop.run();

  const std::optional<Error> failed = running.failed();
  const pipeline::Report report =
      running.finish(failed || !gave_up.empty() ? Duration::zero() : end.drain,
                     [&](const pipeline::Status& status) { line.show("draining: " + pipeline::status_line(status)); });
  line.end();
  if (options.end.json) {
    std::printf("%s\n", pipeline::to_json(report).c_str());
  } else {
    print_summary(report);
  }
  for (const auto& text : pipeline::damage_lines(report.long_lines, agent, report.lost_bytes)) notice(text);
  if (failed) return exit.fail(*failed);
  say_losses(report.shed, report.rejected, max_request_size, options.end.accept_loss, exit);
  if (const auto left = pipeline::left_behind(report.agent_in_memory, gave_up, end.drain); !left.empty())
    exit.fail(left);
}

}  // namespace

void add_up(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("up", "Runs the whole pipeline in one process: broker, agent, sink and guard");
  add_inputs(*command, options->inputs);
  add_text(*command, "--bootstrap", options->bootstrap, "Use this Kafka (HOST:PORT,...) and start no broker");
  add_text(*command, "--listen", options->listen, "Where the embedded broker listens")->capture_default_str();
  add_text(*command, "--http", options->http, "Where the page, the API and the metrics are (default: 127.0.0.1:8080)");
  add_text(*command, "--data", options->data, "Where everything is kept (default: weir below the XDG state home)");
  add_rate(*command, "--sink-rate", options->sink_rate, "Records a second the store takes, to watch backpressure work");
  add_end(*command, options->end, "How long to drain to the store at the end (default: 20s)");
  add_text(*command, "--config", options->config, "A config file; see examples/");
  command->add_flag("--show-settings", options->show_settings, "Print the Kafka settings in force and end");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
