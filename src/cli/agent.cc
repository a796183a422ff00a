// weir agent: collects logs into any Kafka.
#include "agent/agent.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/metrics_page.h"
#include "cli/options.h"
#include "client/directive_feed.h"
#include "client/progress_feed.h"
#include "client/topic_maker.h"
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
  std::string config;
  std::string data;
  std::string guard;
  std::string http;
  InputOptions inputs;
  EndOptions end;
  bool show_settings = false;
};

struct Run {
  pipeline::Settings parts;
  std::optional<runtime::Address> guard;
  std::optional<http::ServerSettings> http;
  End end;
};

Result<Run> run_of(const Options& options) {
  auto parts = pipeline::load_settings(options.config);
  if (!parts) return tl::unexpected(parts.error());
  auto end = read_end(options.end);
  if (!end) return tl::unexpected(end.error());
  Run run{.parts = std::move(*parts), .guard = {}, .http = {}, .end = *end};
  for (const auto& done : {check_bootstrap(options.bootstrap), read_address("--guard", options.guard, run.guard),
                           read_inputs(options.inputs, run.end.run_for.has_value(), run.parts.agent)}) {
    if (!done) return tl::unexpected(done.error());
  }
  if (!options.bootstrap.empty()) run.parts.set_bootstrap(options.bootstrap);
  if (!options.http.empty()) {
    auto http = read_http(options.http);
    if (!http) return tl::unexpected(http.error());
    run.http = std::move(*http);
  }
  agent::AgentSettings& agent = run.parts.agent;
  const std::filesystem::path data =
      options.data.empty() ? runtime::state_directory() : std::filesystem::absolute(options.data);
  agent.own_paths.push_back(data);
  if (agent.state_directory.empty()) agent.state_directory = data / "agent";
  return run;
}

/// Made before anything is sent, unless only the client library can speak to the cluster.
std::unique_ptr<client::TopicMaker> make_topics(const pipeline::Settings& parts, agent::Agent& agent) {
  for (const auto& [name, value] : parts.producer.passed_through) {
    if (name == "security.protocol" && value != "plaintext" && value != "PLAINTEXT") return nullptr;
  }
  agent.hold();
  return std::make_unique<client::TopicMaker>(
      client::AdminSettings{.bootstrap = parts.producer.bootstrap_servers, .client_id = "weir-agent-topics"},
      client::pipeline_topics(parts.agent.topic, parts.agent.urgent_topic, parts.sink.dead_letter_topic),
      [&agent] { agent.release(); });
}

std::string status_line(const agent::AgentStats& stats) {
  return fmt::format("read {}, acked {}, in memory {}{}{}", pipeline::grouped(stats.read),
                     pipeline::grouped(stats.acked), pipeline::grouped(stats.in_memory),
                     stats.limit.why.empty() ? "" : ", limit: ", stats.limit.why);
}

void print_summary(const agent::AgentStats& stats, const Run& run) {
  std::fprintf(stderr, "read %s, acked %s\n", pipeline::grouped(stats.read).c_str(),
               pipeline::grouped(stats.acked).c_str());
  for (const auto& line : pipeline::damage_lines(stats.long_lines, run.parts.agent, stats.lost_bytes))
    std::fprintf(stderr, "%s\n", line.c_str());
}

void run(const Options& options, Exit& exit) {
  auto configured = run_of(options);
  if (!configured) return exit.fail(configured.error(), ExitCode::kUsage);
  Run& run = *configured;
  agent::AgentSettings& settings = run.parts.agent;
  runtime::FileSystem& files = runtime::posix_file_system();

  const ProducerSettings producer_settings = run.parts.producer_of_agent();
  auto producer = Producer::open(options.show_settings ? run.parts.producer : producer_settings);
  if (!producer) return exit.fail(producer.error(), ExitCode::kUsage);
  if (options.show_settings) return print_settings("producer", (*producer)->in_force());

  settings.most_files = runtime::raise_file_limit() / 2;
  if (auto made = files.make_directories(settings.state_directory); !made) return exit.fail(made.error());
  const auto lock = files.lock(settings.state_directory / "lock");
  if (!lock) return exit.fail(lock.error());
  Registry metrics;
  const std::vector<std::string> topics{settings.urgent_topic, settings.topic};
  auto opened = agent::Agent::open(settings, std::move(*producer), files, system_clock());
  if (!opened) return exit.fail(opened.error());
  agent::Agent& agent = **opened;

  runtime::EventLoop loop("weir");
  StatusLine line;
  runtime::SignalWatch signals(loop, [&](int, int count) {
    line.end();
    say_draining(run.end.drain, count);
    loop.stop();
  });
  std::unique_ptr<http::Server> page;
  if (run.http) {
    agent.expose(metrics, producer_settings.client_id);
    auto served = serve_metrics(*run.http, metrics, [&agent]() -> Result<void> {
      if (const std::string stuck = agent.stats().stuck; !stuck.empty()) return fail(ErrorKind::kUnavailable, stuck);
      return {};
    });
    if (!served) return exit.fail(served.error());
    page = std::move(*served);
  }
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
  auto topic_maker = make_topics(run.parts, agent);
  std::fprintf(stderr, "ready, sending to %s\n", producer_settings.bootstrap_servers.c_str());
  agent.start();

  const bool ends_by_itself = settings.once || settings.standard_input;
  Patience patience(run.end.drain);
  std::string gave_up;
  std::function<void()> each_second = [&] {
    line.show(status_line(agent.stats()));
    loop.call_after(1s, each_second);
  };
  std::function<void()> look_for_end = [&] {
    if (agent.ended()) return loop.stop();
    if (ends_by_itself) gave_up = patience.given_up(loop.now().mono, agent.stats().stuck);
    if (!gave_up.empty()) return loop.stop();
    loop.call_after(20ms, look_for_end);
  };
  loop.call_after(1s, each_second);
  look_for_end();
  if (run.end.run_for) loop.call_after(*run.end.run_for, [&] { loop.stop(); });
  loop.run();

  topic_maker.reset();
  agent.stop(!gave_up.empty() ? Duration::zero() : run.end.drain);
  if (directives) directives->stop();
  if (progress) progress->stop();
  page.reset();
  line.end();
  const agent::AgentStats stats = agent.stats();
  if (options.end.json) {
    std::printf("%s\n", pipeline::to_json(stats).c_str());
  } else {
    print_summary(stats, run);
  }
  say_losses(stats.shed, stats.rejected, producer_settings.max_request_size, options.end.accept_loss, exit);
  const Bytes unread = settings.once ? stats.unread_bytes : 0;
  if (const auto left = pipeline::left_behind(stats.in_memory, gave_up, run.end.drain, unread); !left.empty())
    exit.fail(left);
}

}  // namespace

void add_agent(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("agent", "Collects logs into Kafka; positions move after the acknowledgement");
  add_text(*command, "--bootstrap", options->bootstrap, "HOST:PORT,... of the cluster (default: 127.0.0.1:9092)");
  add_inputs(*command, options->inputs);
  add_text(*command, "--data", options->data, "Where the checkpoint is kept (default: weir below the XDG state home)");
  add_text(*command, "--guard", options->guard, "HOST:PORT of a guard whose directives are followed");
  add_text(*command, "--http", options->http,
           "Serve /metrics and /healthz there, like 127.0.0.1:9464 (default: nowhere)");
  add_end(*command, options->end,
          "How long to wait for acknowledgements at the end, and for a broker with --once (default: 20s)");
  add_text(*command, "--config", options->config, "A config file; see examples/");
  command->add_flag("--show-settings", options->show_settings, "Print the Kafka settings in force and end");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
