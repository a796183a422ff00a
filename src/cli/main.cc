#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>

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

/// The subcommand that was being read: "weir quota get".
std::string command_of(const CLI::App& app) {
  std::string text = app.get_name();
  for (auto below = app.get_subcommands(); !below.empty(); below = below.back()->get_subcommands())
    text += " " + below.back()->get_name();
  return text;
}

// A word where a command is expected and none is called so: "no such command: weir bench sed; ...".
std::optional<std::string> unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string words = app.get_name();
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    if (at->get_subcommands([](const CLI::App*) { return true; }).empty()) break;
    const auto known = at->get_subcommands([&](const CLI::App* command) { return command->check_name(argv[i]); });
    if (known.empty())
      return fmt::format("no such command: {}{}; {} --help lists them", i > 1 ? words + " " : "", argv[i], words);
    at = known.front();
    words += " " + at->get_name();
  }
  return std::nullopt;
}

// A standard descriptor that was closed would go to the next file or socket that is opened, and be read or printed into
// as such. What takes its place here fails as a closed one does.
void occupy_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      std::ignore = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run(int argc, char** argv) {
  occupy_closed_descriptors();
  // A reader that goes away (`weir lag | head`) shows as a failed write, not as a death by signal.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app("weir keeps a Kafka log pipeline in balance and says what it does.", "weir");
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 failed, 2 usage or config error, 3 done but records were shed or rejected.");

  Exit exit;
  for (const auto add : kCommands) add(app, exit);
  if (auto wrong = unknown_command(app, argc, argv)) {
    exit.fail(*wrong, ExitCode::kUsage);
    return static_cast<int>(exit.code);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version exit 0; every mistake in the words is a usage error.
    if (error.get_exit_code() == 0) {
      app.exit(error);
    } else {
      std::string what = error.what();
      std::ranges::replace(what, '\n', ' ');
      exit.fail(what + "; see " + command_of(app) + " --help", ExitCode::kUsage);
    }
  }
  std::cout.flush();
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || std::cout.fail()) && exit.code == ExitCode::kDone)
    exit.fail("standard output takes no more: what was to be printed is lost", ExitCode::kFailed);
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
