// The subcommands: one file each, each adding itself to the command line. Nothing but option parsing and printing lives
// here.
#pragma once

#include <string>
#include <string_view>

#include "weir/types.h"

namespace CLI {
class App;
}

namespace weir::cli {

/// Exit codes, the same for every subcommand.
enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,  ///< Wrong words on the command line or in a config file.
  kLost = 3,   ///< Done, but records were shed or rejected.
};

/// What main() returns: a subcommand's callback sets it.
struct Exit {
  ExitCode code = ExitCode::kDone;

  /// Prints `weir: <message>` on stderr and sets the code.
  void fail(std::string_view message, ExitCode with = ExitCode::kFailed);
  /// The same for an Error: bad settings exit with kUsage only where the caller says so.
  void fail(const Error& error, ExitCode with = ExitCode::kFailed) { fail(error.message, with); }
};

/// Each sets up its subcommand on `app`; the callback runs it and sets `exit`. `exit` outlives the parse.
void add_agent(CLI::App& app, Exit& exit);
void add_bench(CLI::App& app, Exit& exit);
void add_broker(CLI::App& app, Exit& exit);
void add_explain(CLI::App& app, Exit& exit);
void add_guard(CLI::App& app, Exit& exit);
void add_lag(CLI::App& app, Exit& exit);
void add_quota(CLI::App& app, Exit& exit);
void add_sink(CLI::App& app, Exit& exit);
void add_up(CLI::App& app, Exit& exit);

}  // namespace weir::cli
