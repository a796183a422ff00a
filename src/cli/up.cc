// weir up: the whole pipeline in one process.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
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
  std::vector<std::string> inputs;
  double generate = 0;
  bool once = false;
  double sink_rate = 0;
  std::string run_for;
  std::string drain;
  bool accept_loss = false;
  bool json = false;
  bool show_settings = false;
};

struct Run {
  pipeline::PipelineSettings settings;
  std::optional<Duration> run_for;
  Duration drain = defaults::kDrainDeadline;
};

Result<Run> run_of(const Options& options) {
  Run run;
  auto parts = pipeline::load_settings(options.config);
  if (!parts) return tl::unexpected(parts.error());
  run.settings.parts = std::move(*parts);
  run.settings.data = options.data.empty() ? runtime::state_directory() : std::filesystem::absolute(options.data);
  run.settings.bootstrap = options.bootstrap;
  run.settings.listen = options.listen;
  const auto complete = [](const char* option, const Error& error) {
    return fail(error.kind, std::string(option) + ": " + error.message);
  };
  if (!options.http.empty())
    if (auto done = pipeline::set_http_address(run.settings.parts.guard.http, options.http); !done)
      return complete("--http", done.error());
  if (!options.run_for.empty()) {
    auto parsed = parse_duration(options.run_for);
    if (!parsed) return complete("--for", parsed.error());
    run.run_for = *parsed;
  }
  if (!options.drain.empty()) {
    auto parsed = parse_duration(options.drain);
    if (!parsed) return complete("--drain", parsed.error());
    run.drain = *parsed;
  }
  agent::AgentSettings& agent = run.settings.parts.agent;
  for (const std::string& input : options.inputs) {
    if (input == "-")
      agent.standard_input = true;
    else
      agent.paths.push_back(std::filesystem::absolute(input));
  }
  if (options.generate > 0) agent.generate_per_second = options.generate;
  if (options.once) agent.once = true;
  if (agent.paths.empty() && !agent.standard_input && agent.generate_per_second == 0)
    agent.paths.emplace_back("/var/log");
  if (options.sink_rate > 0) run.settings.parts.sink.records_per_second = options.sink_rate;
  return run;
}

/// One line that is written over on a terminal; nothing in a pipe.
class StatusLine {
 public:
  StatusLine() : on_(runtime::is_terminal(STDERR_FILENO)) {}
  void show(const std::string& text) {
    if (!on_) return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  void end() {
    if (shown_) std::fputc('\n', stderr);
    shown_ = false;
  }

 private:
  const bool on_;
  bool shown_ = false;
};

int show_settings(const pipeline::Settings& parts) {
  // Opened without a broker: that is enough to see what the client library was given.
  auto producer = Producer::open(parts.producer);
  if (producer)
    for (const auto& [name, value, source] : (*producer)->in_force())
      std::printf("producer\t%s\t%s\t%s\n", name.c_str(), value.c_str(), source.c_str());
  auto consumer = Consumer::open(parts.sink.consumer);
  if (consumer)
    for (const auto& [name, value, source] : (*consumer)->in_force())
      std::printf("consumer\t%s\t%s\t%s\n", name.c_str(), value.c_str(), source.c_str());
  return producer && consumer ? 0 : 1;
}

/// The whole report, for people: stdout carries data only with --json.
void print_summary(const pipeline::Report& r, StatusLine& line) {
  line.end();
  std::fprintf(stderr, "read %s, stored %s, duplicates %s, dead letters %s, left in the broker %s\n",
               pipeline::grouped(r.read).c_str(), pipeline::grouped(r.stored).c_str(),
               pipeline::grouped(r.duplicates).c_str(), pipeline::grouped(r.dead_lettered).c_str(),
               r.lag ? pipeline::grouped(static_cast<std::uint64_t>(*r.lag)).c_str() : "unknown");
  if (r.agent_in_memory > 0)
    std::fprintf(stderr, "%s entries were read and not acknowledged; those of files are read again at the next start\n",
                 pipeline::grouped(r.agent_in_memory).c_str());
}

void run(const Options& options, Exit& exit) {
  auto configured = run_of(options);
  if (!configured) return exit.fail(configured.error(), ExitCode::kUsage);
  if (options.show_settings) {
    if (show_settings(configured->settings.parts) != 0) exit.fail("the settings were refused by the client library");
    return;
  }
  const MonoTime begin = system_clock().now().mono;
  const bool ends_by_itself = configured->settings.parts.agent.once || configured->settings.parts.agent.standard_input;

  runtime::EventLoop loop("weir");
  StatusLine line;
  const Duration drain = configured->drain;
  runtime::SignalWatch signals(loop, [&](int, int count) {
    line.end();
    if (count == 1)
      std::fprintf(stderr, "draining, %s at most; twice more ends at once\n", format_duration(drain).c_str());
    loop.stop();
  });
  auto started = pipeline::Pipeline::start(
      std::move(configured->settings), [](const std::string& notice) { std::fprintf(stderr, "%s\n", notice.c_str()); });
  if (!started) return exit.fail(started.error());
  pipeline::Pipeline& running = **started;
  std::fprintf(stderr, "ready in %.0f ms: broker %s, page %s\n", to_ms(system_clock().now().mono - begin),
               running.broker_address().c_str(), running.page_address().c_str());

  std::function<void()> each_second = [&] {
    line.show(pipeline::status_line(running.tick(loop.now().mono)));
    loop.call_after(1s, each_second);
  };
  std::function<void()> look_for_end = [&] {
    if (running.failed() || (ends_by_itself && running.ended())) return loop.stop();
    loop.call_after(20ms, look_for_end);
  };
  loop.call_after(1s, each_second);
  look_for_end();
  if (configured->run_for) loop.call_after(*configured->run_for, [&] { loop.stop(); });
  loop.run();

  const std::optional<Error> failed = running.failed();
  const pipeline::Report report = running.finish(failed ? Duration::zero() : drain);
  line.end();
  if (options.json)
    std::printf("%s\n", pipeline::to_json(report).c_str());
  else
    print_summary(report, line);
  if (failed) return exit.fail(*failed);
  if (report.lost() && !options.accept_loss) exit.code = ExitCode::kLost;
  if (report.agent_in_memory > 0 && exit.code == ExitCode::kDone)
    exit.fail(
        fmt::format("{} entries could not be brought into the broker within the drain time", report.agent_in_memory));
}

}  // namespace

void add_up(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("up", "Runs the whole pipeline in one process: broker, agent, sink and guard");
  command
      ->add_option("--input", options->inputs,
                   "A file or directory to follow, or - for stdin; may be repeated (default: /var/log)")
      ->allow_extra_args(false);
  command->add_option("--generate", options->generate, "Synthetic entries a second, as an input")
      ->check(CLI::Range(1.0, 1e7));
  command->add_flag("--once", options->once, "Read what is there, drain and end");
  command->add_option("--bootstrap", options->bootstrap, "Use this Kafka (HOST:PORT,...) and start no broker");
  command->add_option("--listen", options->listen, "Where the embedded broker listens")->capture_default_str();
  command->add_option("--http", options->http, "Where the page, the API and the metrics are (default: 127.0.0.1:8080)");
  command->add_option("--data", options->data, "Where everything is kept (default: weir below the XDG state home)");
  command->add_option("--sink-rate", options->sink_rate, "Records a second the store takes, to watch backpressure work")
      ->check(CLI::Range(1.0, 1e7));
  command->add_option("--for", options->run_for, "End after this time from ready, like 20s");
  command->add_option("--drain", options->drain, "How long to drain to the store at the end (default: 20s)");
  command->add_option("--config", options->config, "A config file; see examples/");
  command->add_flag("--accept-loss", options->accept_loss, "Exit 0 although records were shed or rejected");
  command->add_flag("--json", options->json, "Print one line of JSON at the end");
  command->add_flag("--show-settings", options->show_settings, "Print the Kafka settings in force and end");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
