#include "cli/options.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/units.h"
#include "pipeline/report.h"
#include "runtime/file.h"
#include "runtime/process.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

constexpr double kMostPerSecond = 1e7;
// Long enough for anybody, and far from where a clock overflows.
constexpr Duration kLongestRun = 24h * 365;

std::string not_empty(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

std::string rate(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool number = !text.empty() && *end == '\0' && std::isfinite(value);
  if (number && value >= 1 && value <= kMostPerSecond) return "";
  return fmt::format("'{}' is not a number a second from 1 to {:.0f}", text, kMostPerSecond);
}

Result<Duration> time_of(const char* option, const std::string& text, Duration low, Duration high) {
  auto value = parse_duration(text);
  if (!value) return fail(value.error().kind, fmt::format("{}: {}", option, value.error().message));
  if (*value < low || *value > high) {
    return fail(ErrorKind::kInvalid,
                fmt::format("{}: {} is not from {} to {}", option, text, format_duration(low), format_duration(high)));
  }
  return value;
}

}  // namespace

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& into, const std::string& help) {
  return command.add_option(name, into, help)->check(not_empty, "");
}

CLI::Option* add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& into,
                       const std::string& help) {
  return command.add_option(name, into, help)->check(not_empty, "")->allow_extra_args(false);
}

CLI::Option* add_rate(CLI::App& command, const std::string& name, double& into, const std::string& help) {
  return command.add_option(name, into, help)->check(rate, "");
}

Result<void> read_time(const char* option, const std::string& text, Duration low, Duration high, Duration& into) {
  if (text.empty()) return {};
  auto value = time_of(option, text, low, high);
  if (!value) return tl::unexpected(value.error());
  into = *value;
  return {};
}

Result<void> read_time(const char* option, const std::string& text, Duration low, Duration high,
                       std::optional<Duration>& into) {
  if (text.empty()) return {};
  return read_time(option, text, low, high, into.emplace());
}

Result<void> read_address(const char* option, const std::string& text, std::optional<runtime::Address>& into) {
  if (text.empty()) return {};
  auto address = runtime::parse_address(text);
  if (!address) return fail(address.error().kind, fmt::format("{}: {}", option, address.error().message));
  into = std::move(*address);
  return {};
}

Result<void> check_bootstrap(const std::string& text) {
  if (text.empty()) return {};
  if (auto addresses = runtime::parse_addresses(text); !addresses) {
    return fail(addresses.error().kind, "--bootstrap: " + addresses.error().message);
  }
  return {};
}

void add_inputs(CLI::App& command, InputOptions& options) {
  add_texts(command, "--input", options.inputs,
            "A file or directory to follow, or - for stdin; may be repeated (default: /var/log)");
  add_rate(command, "--generate", options.generate, "Synthetic entries a second, as an input");
  command.add_flag("--once", options.once, "Read what is there, drain and end");
}

Result<void> read_inputs(const InputOptions& options, bool bounded, agent::AgentSettings& agent) {
  for (const std::string& input : options.inputs) {
    if (input == "-") {
      agent.standard_input = true;
    } else {
      agent.paths.push_back(std::filesystem::absolute(input));
    }
  }
  for (const auto& path : agent.paths) {
    const auto status = runtime::posix_file_system().status(path);
    if (!status || status->type != runtime::FileType::kOther) continue;
    return fail(ErrorKind::kInvalid, "--input: " + agent::not_a_file(path));
  }
  if (agent.standard_input && (::fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
    return fail(ErrorKind::kInvalid, "--input -: standard input is closed");
  // Reading what is printed would never end.
  for (const char* output : {"/proc/self/fd/1", "/proc/self/fd/2"}) agent.own_paths.emplace_back(output);
  if (options.generate > 0) agent.generate_per_second = options.generate;
  if (options.once) agent.once = true;
  if (agent.once && agent.generate_per_second > 0 && !bounded) {
    return fail(ErrorKind::kInvalid, "--once: the generator never comes to an end; say --for 20s in its place");
  }
  if (agent.paths.empty() && !agent.standard_input && agent.generate_per_second == 0) {
    agent.paths.emplace_back("/var/log");
  }
  return {};
}

void add_end(CLI::App& command, EndOptions& options, const char* drain_help) {
  add_text(command, "--for", options.run_for, "Stop the inputs this long after ready, like 20s");
  add_text(command, "--drain", options.drain, drain_help);
  command.add_flag("--accept-loss", options.accept_loss, "Exit 0 although records were shed or rejected");
  command.add_flag("--json", options.json, "Print one line of JSON at the end");
}

Result<End> read_end(const EndOptions& options) {
  End end;
  if (auto done = read_time("--for", options.run_for, 1ms, kLongestRun, end.run_for); !done)
    return tl::unexpected(done.error());
  if (auto done = read_time("--drain", options.drain, 0ms, 24h, end.drain); !done) return tl::unexpected(done.error());
  return end;
}

std::string Patience::given_up(MonoTime now, const std::string& stuck) {
  if (stuck.empty()) {
    since_.reset();
    return "";
  }
  if (!since_) since_ = now;
  return now - *since_ >= limit_ ? stuck : "";
}

void print_settings(const char* client, const std::vector<SettingInForce>& settings) {
  for (const auto& [name, value, source] : settings) {
    std::printf("%s\t%s\t%s\t%s\n", client, name.c_str(), value.c_str(), source.c_str());
  }
}

StatusLine::StatusLine() : on_(runtime::is_terminal(2)) {}

void StatusLine::show(const std::string& text) {
  if (!on_) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void StatusLine::end() {
  if (shown_) std::fputc('\n', stderr);
  shown_ = false;
}

void say_losses(const metrics::Reasons& shed, const metrics::Reasons& rejected, Bytes max_request_size, bool accepted,
                Exit& exit) {
  for (const auto& line : pipeline::loss_lines(shed, rejected, max_request_size)) exit.fail(line, ExitCode::kLost);
  if (accepted) exit.code = ExitCode::kDone;
}

void say_draining(Duration drain, int count) {
  if (count > 1) return;
  std::fprintf(stderr, "draining, %s at most; twice more ends at once\n", format_duration(drain).c_str());
}

}  // namespace weir::cli
