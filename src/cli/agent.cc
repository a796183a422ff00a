// weir agent: collects logs into any Kafka.
#include "agent/agent.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "client/directive_feed.h"
#include "client/progress_feed.h"
#include "pipeline/report.h"
#include "pipeline/settings.h"
#include "runtime/address.h"
#include "runtime/event_loop.h"
#include "runtime/file.h"
#include "runtime/process.h"
#include "runtime/signals.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

struct Options {
  std::string bootstrap;
  std::string config;
  std::string data;
  std::string guard;
  std::vector<std::string> inputs;
  double generate = 0;
  bool once = false;
  std::string run_for;
  std::string drain;
  bool accept_loss = false;
  bool json = false;
};

struct Run {
  pipeline::Settings parts;
  std::optional<runtime::Address> guard;
  std::optional<Duration> run_for;
  Duration drain = defaults::kDrainDeadline;
};

template <typename T>
Result<void> read_option(const char* name, const std::string& text, Result<T> (*parse)(std::string_view), auto& into) {
  if (text.empty()) return {};
  auto value = parse(text);
  if (!value) return fail(value.error().kind, std::string(name) + ": " + value.error().message);
  into = *value;
  return {};
}

Result<Run> run_of(const Options& options) {
  auto parts = pipeline::load_settings(options.config);
  if (!parts) return tl::unexpected(parts.error());
  Run run{.parts = std::move(*parts)};
  if (!options.bootstrap.empty()) run.parts.set_bootstrap(options.bootstrap);
  const auto duration = [](std::string_view text) { return parse_duration(text); };
  const auto address = [](std::string_view text) { return runtime::parse_address(text); };
  for (const auto& done : {read_option<Duration>("--for", options.run_for, duration, run.run_for),
                           read_option<Duration>("--drain", options.drain, duration, run.drain),
                           read_option<runtime::Address>("--guard", options.guard, address, run.guard)}) {
    if (!done) return tl::unexpected(done.error());
  }
  agent::AgentSettings& agent = run.parts.agent;
  for (const std::string& input : options.inputs) {
    if (input == "-") {
      agent.standard_input = true;
    } else {
      agent.paths.push_back(std::filesystem::absolute(input));
    }
  }
  if (options.generate > 0) agent.generate_per_second = options.generate;
  if (options.once) agent.once = true;
  if (agent.paths.empty() && !agent.standard_input && agent.generate_per_second == 0)
    agent.paths.emplace_back("/var/log");
  const std::filesystem::path data =
      options.data.empty() ? runtime::state_directory() : std::filesystem::absolute(options.data);
  agent.own_directories.push_back(data);
  if (agent.state_directory.empty()) agent.state_directory = data / "agent";
  return run;
}

std::string to_json(const agent::AgentStats& stats) {
  return nlohmann::ordered_json{{"offered", stats.offered},
                                {"read", stats.read},
                                {"behind", stats.behind},
                                {"acked", stats.acked},
                                {"in_memory", stats.in_memory},
                                {"spooled", stats.spooled},
                                {"shed", stats.shed},
                                {"rejected", stats.rejected},
                                {"truncations", stats.truncations},
                                {"lost_bytes", stats.lost_bytes},
                                {"long_lines", stats.long_lines},
                                {"paused_s", to_seconds(stats.paused)},
                                {"peak_buffer_bytes", stats.peak_buffer_bytes}}
      .dump();
}

void run(const Options& options, Exit& exit) {
  auto configured = run_of(options);
  if (!configured) return exit.fail(configured.error(), ExitCode::kUsage);
  Run& run = *configured;
  agent::AgentSettings& settings = run.parts.agent;
  runtime::FileSystem& files = runtime::posix_file_system();

  if (auto made = files.make_directories(settings.state_directory); !made) return exit.fail(made.error());
  const auto lock = files.lock(settings.state_directory / "lock");
  if (!lock) return exit.fail(lock.error());

  ProducerSettings producer_settings = run.parts.producer;
  const Bytes readers = agent::Agent::reader_memory(settings);
  producer_settings.buffer_memory = std::max<Bytes>(producer_settings.buffer_memory, readers + kMiB) - readers;
  auto producer = Producer::open(producer_settings);
  if (!producer) return exit.fail(producer.error(), ExitCode::kUsage);
  const std::vector<std::string> topics{settings.urgent_topic, settings.topic};
  auto opened = agent::Agent::open(settings, std::move(*producer), files, system_clock());
  if (!opened) return exit.fail(opened.error());
  agent::Agent& agent = **opened;

  runtime::EventLoop loop("weir");
  runtime::SignalWatch signals(loop, [&](int, int count) {
    if (count == 1) {
      std::fprintf(stderr, "draining, %s at most; twice more ends at once\n", format_duration(run.drain).c_str());
    }
    loop.stop();
  });
  std::optional<client::ProgressFeed> progress;
  if (producer_settings.window || producer_settings.max_lag) {
    client::ProgressFeedSettings feed;
    feed.admin.bootstrap = producer_settings.bootstrap_servers;
    feed.group = run.parts.sink.consumer.group_id;
    feed.topics = topics;
    feed.lag = producer_settings.max_lag.has_value();
    progress.emplace(feed, agent.producer());
    progress->start();
  }
  std::optional<client::DirectiveFeed> directives;
  if (run.guard) {
    directives.emplace(client::DirectiveFeedSettings{.guard = *run.guard,
                                                     .client_id = producer_settings.client_id,
                                                     .topics = topics,
                                                     .laws = !producer_settings.window},
                       [&agent](const Directive& directive) { agent.producer().apply(directive); });
    directives->start();
  }
  std::fprintf(stderr, "ready, sending to %s\n", producer_settings.bootstrap_servers.c_str());
  agent.start();

  const bool terminal = runtime::is_terminal(STDERR_FILENO);
  std::function<void()> each_second = [&] {
    if (terminal) {
      const agent::AgentStats stats = agent.stats();
      std::fprintf(stderr, "\r\033[Kread %s, acked %s, in memory %s%s%s", pipeline::grouped(stats.read).c_str(),
                   pipeline::grouped(stats.acked).c_str(), pipeline::grouped(stats.in_memory).c_str(),
                   stats.limit.why.empty() ? "" : ", limit: ", stats.limit.why.c_str());
    }
    loop.call_after(1s, each_second);
  };
  std::function<void()> look_for_end = [&] {
    if (agent.ended()) return loop.stop();
    loop.call_after(20ms, look_for_end);
  };
  loop.call_after(1s, each_second);
  look_for_end();
  if (run.run_for) loop.call_after(*run.run_for, [&] { loop.stop(); });
  loop.run();

  const std::uint64_t left = agent.stop(run.drain);
  if (directives) directives->stop();
  if (progress) progress->stop();
  const agent::AgentStats stats = agent.stats();
  if (options.json) {
    std::printf("%s\n", to_json(stats).c_str());
  } else {
    std::fprintf(stderr, "%sread %s, acked %s\n", terminal ? "\r\033[K" : "", pipeline::grouped(stats.read).c_str(),
                 pipeline::grouped(stats.acked).c_str());
  }
  if ((!stats.shed.empty() || !stats.rejected.empty()) && !options.accept_loss) exit.code = ExitCode::kLost;
  if (left > 0) exit.fail("the drain did not end in time");
}

}  // namespace

void add_agent(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("agent", "Collects logs into Kafka; positions move after the acknowledgement");
  command->add_option("--bootstrap", options->bootstrap, "HOST:PORT,... of the cluster (default: 127.0.0.1:9092)");
  command
      ->add_option("--input", options->inputs,
                   "A file or directory to follow, or - for stdin; may be repeated (default: /var/log)")
      ->allow_extra_args(false);
  command->add_option("--generate", options->generate, "Synthetic entries a second, as an input")
      ->check(CLI::Range(1.0, 1e7));
  command->add_flag("--once", options->once, "Read what is there, drain and end");
  command->add_option("--data", options->data, "Where the checkpoint is kept (default: weir below the XDG state home)");
  command->add_option("--guard", options->guard, "HOST:PORT of a guard whose directives are followed");
  command->add_option("--for", options->run_for, "End after this time, like 20s");
  command->add_option("--drain", options->drain, "How long to wait for acknowledgements at the end (default: 20s)");
  command->add_option("--config", options->config, "A config file; see examples/");
  command->add_flag("--accept-loss", options->accept_loss, "Exit 0 although records were shed or rejected");
  command->add_flag("--json", options->json, "Print one line of JSON at the end");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
