// What several subcommands ask for in the same words, read and checked once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "cli/commands.h"
#include "metrics/tally.h"
#include "runtime/address.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

/// Options whose value must be something: `--data ''` is a mistake, not "not given".
CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& into, const std::string& help);
CLI::Option* add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& into,
                       const std::string& help);
/// Entries or records a second: from 1 to 10,000,000.
CLI::Option* add_rate(CLI::App& command, const std::string& name, double& into, const std::string& help);

/// Each leaves `into` alone when `text` is empty, and else fails with the option's name and what it takes.
Result<void> read_time(const char* option, const std::string& text, Duration low, Duration high, Duration& into);
Result<void> read_time(const char* option, const std::string& text, Duration low, Duration high,
                       std::optional<Duration>& into);
Result<void> read_address(const char* option, const std::string& text, std::optional<runtime::Address>& into);
/// Only looks: bootstrap.servers stays a text.
Result<void> check_bootstrap(const std::string& text);

/// Where entries come from: `weir up` and `weir agent`.
struct InputOptions {
  std::vector<std::string> inputs;
  double generate = 0;
  bool once = false;
};
void add_inputs(CLI::App& command, InputOptions& options);
/// `bounded`: something else ends the run (`--for`).
Result<void> read_inputs(const InputOptions& options, bool bounded, agent::AgentSettings& agent);

/// How a run ends: `weir up` and `weir agent`.
struct EndOptions {
  std::string run_for;
  std::string drain;
  bool accept_loss = false;
  bool json = false;
};
struct End {
  std::optional<Duration> run_for;
  Duration drain = defaults::kDrainDeadline;
};
void add_end(CLI::App& command, EndOptions& options, const char* drain_help);
Result<End> read_end(const EndOptions& options);

/// Tells a run that ends by itself (`--once`, stdin) that it never will: nothing could move for as long as a drain may
/// take.
class Patience {
 public:
  explicit Patience(Duration limit) : limit_(limit) {}
  /// `stuck`: why nothing can move, or empty. The same when that has been so for too long, else empty.
  std::string given_up(MonoTime now, const std::string& stuck);

 private:
  Duration limit_;
  std::optional<MonoTime> since_;
};

/// One line of stdout for each setting: `client`, name, value, source.
void print_settings(const char* client, const std::vector<SettingInForce>& settings);

/// One line that is written over on a terminal (stderr); nothing in a pipe.
class StatusLine {
 public:
  StatusLine();
  void show(const std::string& text);
  void end();

 private:
  const bool on_;
  bool shown_ = false;
};

/// Says what was lost and why; the exit code is kLost unless `accepted`.
void say_losses(const metrics::Reasons& shed, const metrics::Reasons& rejected, Bytes max_request_size, bool accepted,
                Exit& exit);

/// What is said at the first of three signals.
void say_draining(Duration drain, int count);

}  // namespace weir::cli
