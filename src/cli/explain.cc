// weir explain: why is this slow? Reads what a benchmark printed.
#include "bench/explain/explain.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace weir::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  bool json = false;
};

Result<void> feed(bench::Explainer& explainer, const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return fail(ErrorKind::kNotFound, path + ": cannot be opened");
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::vector<char> chunk(64 * kKiB);
  while (in) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    explainer.feed({chunk.data(), static_cast<std::size_t>(in.gcount())});
  }
  if (in.bad()) return fail(ErrorKind::kIo, path + ": cannot be read");
  explainer.end_of_input();
  return {};
}

void run(const Options& options, Exit& exit) {
  bench::Explainer explainer;
  for (const std::string& path : options.files) {
    if (Result<void> fed = feed(explainer, path); !fed) return exit.fail(fed.error());
  }
  const Result<bench::Observations> seen = explainer.result();
  if (!seen) return exit.fail(seen.error());
  const bench::Diagnosis diagnosis = bench::diagnose(*seen);
  std::cout << (options.json ? bench::to_json(*seen, diagnosis) + "\n" : bench::to_text(*seen, diagnosis))
            << std::flush;
}

}  // namespace

void add_explain(CLI::App& app, Exit& exit) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Says why a benchmark is slow, from what it printed");
  command->add_option("FILE", options->files, "What was printed, prose around it included; - reads standard input")
      ->required();
  command->add_flag("--json", options->json, "One line of JSON");
  command->callback([options, &exit] { run(*options, exit); });
}

}  // namespace weir::cli
