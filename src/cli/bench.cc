// weir bench: load and latency. `seed` is the benchmark question: growing latency, its cause, and the guarded run.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "bench/seed/report.h"
#include "bench/seed/tweets.h"
#include "cli/commands.h"
#include "runtime/process.h"
#include "runtime/subprocess.h"
#include "runtime/temp_directory.h"

namespace weir::cli {
namespace {

struct Options {
  std::string bootstrap;
  std::size_t steps = 1;
  bool json = false;
};

/// A broker of our own with a temporary data directory; ends with this object.
struct OwnBroker {
  runtime::TempDirectory data{"weir-bench"};
  std::optional<runtime::Subprocess> process;
};

// The address in a line like "ready 127.0.0.1:34567 (12 ms)".
std::string address_in(std::string_view line) {
  const std::size_t start = line.find("127.0.0.1:");
  if (start == std::string_view::npos) return {};
  const std::size_t end = line.find_first_not_of("0123456789.:", start);
  return std::string(line.substr(start, end == std::string_view::npos ? end : end - start));
}

Result<std::string> start(OwnBroker& broker) {
  auto process = runtime::Subprocess::spawn({.argv = {runtime::executable_path().string(), "broker", "--data",
                                                      broker.data.path().string(), "--listen", "127.0.0.1:0"},
                                             .errors = broker.data / "broker.log"});
  if (!process) return tl::unexpected(process.error());
  broker.process.emplace(std::move(*process));
  const Result<std::string> ready = broker.process->read_until("ready", std::chrono::seconds(30));
  if (!ready) return fail(ready.error().kind, "the broker did not start: " + ready.error().message);
  std::string address = address_in(*ready);
  if (address.empty()) return fail(ErrorKind::kInvalid, "no address in the broker's line: " + *ready);
  return address;
}

Result<bench::SeedReport> run_all(const bench::Place& place, std::size_t steps) {
  const std::vector<std::string> tweets = bench::make_tweets();
  if (auto prepared = bench::prepare_topic(place); !prepared) return tl::unexpected(prepared.error());
  bench::SeedReport report;

  log::info("bench: (a) {} messages, 77 us of work for each", tweets.size() * steps);
  auto question = bench::run_burst(place, tweets, steps, bench::kQuestionWork);
  if (!question) return tl::unexpected(question.error());
  report.question = std::move(*question);

  log::info("bench: (b) the same without work");
  auto no_work = bench::run_burst(place, tweets, steps, Duration::zero());
  if (!no_work) return tl::unexpected(no_work.error());
  report.no_work = std::move(*no_work);

  bench::GuardedSettings settings;
  settings.capacity_per_s = report.question.figures.service_per_s.value_or(0);
  log::info("bench: (c) guarded, {:.0f} s", to_seconds(settings.warm_up + settings.measure));
  auto guarded = bench::run_guarded(place, tweets, settings);
  if (!guarded) return tl::unexpected(guarded.error());
  report.guarded = std::move(*guarded);
  return report;
}

void run_seed(const Options& options, Exit& exit) {
  bench::Place place{.bootstrap = options.bootstrap};
  OwnBroker broker;
  if (place.bootstrap.empty()) {
    const Result<std::string> address = start(broker);
    if (!address) return exit.fail(address.error());
    place.bootstrap = *address;
  }
  const Result<bench::SeedReport> report = run_all(place, options.steps);
  if (!report) return exit.fail(report.error());
  std::cout << (options.json ? bench::to_json(*report) + "\n" : bench::to_text(*report)) << std::flush;
}

}  // namespace

void add_bench(CLI::App& app, Exit& exit) {
  CLI::App* bench = app.add_subcommand("bench", "Load and latency");
  bench->require_subcommand(1);
  auto options = std::make_shared<Options>();
  CLI::App* seed =
      bench->add_subcommand("seed", "The benchmark question: why the latency grows, and how it stays flat");
  seed->add_option("--bootstrap", options->bootstrap, "A Kafka to use; default: a weir broker of its own, temporary");
  seed->add_option("--steps", options->steps, "Send the 14,485 records so many times")->check(CLI::Range(1, 1000));
  seed->add_flag("--json", options->json, "One line of JSON");
  seed->callback([options, &exit] { run_seed(*options, exit); });
}

}  // namespace weir::cli
