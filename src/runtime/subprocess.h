// A child process that cannot outlive us: tests and benchmarks start real brokers, agents and peers with it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/file.h"
#include "weir/types.h"

namespace weir::runtime {

/// How a child ended: exit code, or the signal that ended it.
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
};

/// Owned by one thread. The child dies by SIGKILL when this object goes, and when the THREAD that spawned it ends (the
/// kernel's rule): spawn from a thread that lives as long.
class Subprocess {
 public:
  struct Options {
    std::vector<std::string> argv;                                   ///< argv[0] is looked up in PATH.
    std::vector<std::pair<std::string, std::string>> environment{};  ///< Added to ours.
    Path directory{};                                                ///< Working directory; ours when empty.
    Path output{};       ///< stdout goes to this file; when empty, to read_line().
    Path errors{};       ///< stderr goes to this file; when empty, to ours.
    bool input = false;  ///< stdin is write(); else /dev/null.
  };
  static Result<Subprocess> spawn(const Options& options);
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();

  int pid() const { return pid_; }
  /// The next line of its stdout without its end; kTimeout, or kClosed at the end of the output.
  Result<std::string> read_line(Duration timeout);
  /// Reads lines until one contains `text`; gives that line.
  Result<std::string> read_until(std::string_view text, Duration timeout);
  /// The rest of its stdout until it closes it.
  Result<std::string> read_rest(Duration timeout);
  Result<void> write(std::string_view text);
  void close_input();
  /// Sends a signal to it; nothing when it has been waited for.
  void kill(int signal);
  /// Waits for its end.
  Result<ExitStatus> wait(Duration timeout);
  bool running();

 private:
  Subprocess(int pid, int input, int output) : pid_(pid), input_(input), output_(output) {}
  void end();
  Result<bool> fill(MonoTime deadline);
  int pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string pending_;
  std::optional<ExitStatus> status_;
};

}  // namespace weir::runtime
