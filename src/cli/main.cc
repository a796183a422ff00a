#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/commands.h"

namespace weir::cli {

void Exit::fail(std::string_view message, ExitCode with) {
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(message.size()), message.data());
  code = with;
}

namespace {

// In the order of `weir --help`.
constexpr void (*kCommands[])(CLI::App&, Exit&) = {
    add_up, add_broker, add_agent, add_sink, add_guard, add_lag, add_quota, add_bench, add_explain,
};

int run(int argc, char** argv) {
  // A reader that goes away (`weir lag | head`) shows as a failed write, not as a death by signal.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app("weir keeps a Kafka log pipeline in balance and says what it does.", "weir");
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 failed, 2 usage or config error, 3 done but records were shed or rejected.");

  Exit exit;
  for (const auto add : kCommands) add(app, exit);
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](CLI::App* known) { return known->check_name(argv[1]); }).empty()) {
    exit.fail(std::string("no such command: ") + argv[1] + "; weir --help lists them", ExitCode::kUsage);
    return static_cast<int>(exit.code);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version exit 0; every mistake in the words is a usage error.
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return static_cast<int>(exit.code);
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  try {
    return weir::cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    return static_cast<int>(weir::cli::ExitCode::kFailed);
  }
}
