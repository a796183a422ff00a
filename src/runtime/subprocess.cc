#include "runtime/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/clock.h"

namespace weir::runtime {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_both() {
    for (int* end : {&read_end, &write_end})
      if (*end >= 0) ::close(std::exchange(*end, -1));
  }
};

/// What the child needs, made before fork: after it only calls that are safe in a child of many threads.
struct Prepared {
  std::string program;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
};

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = ::getenv("PATH");
  for (std::string_view rest = path != nullptr ? path : "/usr/bin:/bin"; !rest.empty();) {
    const auto colon = rest.find(':');
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return name;
}

Prepared prepare(const Subprocess::Options& options) {
  Prepared p;
  p.program = find_program(options.argv[0]);
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry = *e;
    const bool replaced = std::any_of(options.environment.begin(), options.environment.end(),
                                      [&](const auto& added) { return entry.starts_with(added.first + "="); });
    if (!replaced) p.environment.emplace_back(entry);
  }
  for (const auto& [name, value] : options.environment) p.environment.push_back(name + "=" + value);
  for (const auto& a : options.argv) p.argv.push_back(const_cast<char*>(a.c_str()));
  for (auto& e : p.environment) p.envp.push_back(e.data());
  p.argv.push_back(nullptr);
  p.envp.push_back(nullptr);
  return p;
}

[[noreturn]] void run_child(const Prepared& p, const Subprocess::Options& options, pid_t parent, int input, int output,
                            int failure) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const auto redirect = [](const char* path, int flags, int target) {
    const int file = ::open(path, flags, 0644);
    if (file >= 0) ::dup2(file, target);
  };
  if (input >= 0)
    ::dup2(input, 0);
  else
    redirect("/dev/null", O_RDONLY, 0);
  if (output >= 0)
    ::dup2(output, 1);
  else
    redirect(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 1);
  if (!options.errors.empty()) redirect(options.errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 2);
  if (options.directory.empty() || ::chdir(options.directory.c_str()) == 0)
    ::execve(p.program.c_str(), p.argv.data(), p.envp.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<Subprocess> Subprocess::spawn(const Options& options) {
  if (options.argv.empty()) return fail(ErrorKind::kInvalid, "no program to start was named");
  const Prepared prepared = prepare(options);
  Pipe input, output, failure;
  const auto close_all = [&] {
    input.close_both();
    output.close_both();
    failure.close_both();
  };
  if ((options.input && !input.open()) || (options.output.empty() && !output.open()) || !failure.open()) {
    close_all();
    return fail(ErrorKind::kIo, fmt::format("cannot start {}: no pipe: {}", options.argv[0], std::strerror(errno)));
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_child(prepared, options, parent, input.read_end, output.write_end, failure.write_end);
  if (pid < 0) {
    close_all();
    return fail(ErrorKind::kIo, fmt::format("cannot start {}: {}", options.argv[0], std::strerror(errno)));
  }
  ::close(std::exchange(failure.write_end, -1));
  int error = 0;
  const bool failed =
      ::read(failure.read_end, &error, sizeof error) == sizeof error;  // closed by exec when all is well
  if (failed) {
    ::waitpid(pid, nullptr, 0);
    close_all();
    return fail(ErrorKind::kNotFound, fmt::format("cannot start {}: {}", options.argv[0], std::strerror(error)));
  }
  Subprocess child(pid, std::exchange(input.write_end, -1), std::exchange(output.read_end, -1));
  close_all();
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      pending_(std::move(other.pending_)),
      status_(other.status_) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  end();
  pid_ = std::exchange(other.pid_, -1);
  input_ = std::exchange(other.input_, -1);
  output_ = std::exchange(other.output_, -1);
  pending_ = std::move(other.pending_);
  status_ = other.status_;
  return *this;
}

Subprocess::~Subprocess() { end(); }

void Subprocess::end() {
  close_input();
  if (output_ >= 0) ::close(std::exchange(output_, -1));
  if (pid_ < 0 || status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Result<bool> Subprocess::fill(MonoTime deadline) {
  if (output_ < 0) return false;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system_clock().now().mono).count();
    pollfd p{output_, POLLIN, 0};
    const int ready = ::poll(&p, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      if (left > 0) continue;
      return fail(ErrorKind::kTimeout, fmt::format("process {} wrote nothing in time", pid_));
    }
    std::array<char, 4096> chunk;
    const ssize_t n = ::read(output_, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    pending_.append(chunk.data(), static_cast<std::size_t>(n));
    return true;
  }
}

Result<std::string> Subprocess::read_line(Duration timeout) {
  const MonoTime deadline = system_clock().now().mono + timeout;
  while (true) {
    if (const auto end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    auto more = fill(deadline);
    if (!more) return tl::unexpected(more.error());
    if (!*more) {
      if (!pending_.empty()) return std::exchange(pending_, {});
      return fail(ErrorKind::kClosed, fmt::format("process {} has ended its output", pid_));
    }
  }
}

Result<std::string> Subprocess::read_until(std::string_view text, Duration timeout) {
  const MonoTime deadline = system_clock().now().mono + timeout;
  while (true) {
    auto line = read_line(deadline - system_clock().now().mono);
    if (!line || line->find(text) != std::string::npos) return line;
  }
}

Result<std::string> Subprocess::read_rest(Duration timeout) {
  const MonoTime deadline = system_clock().now().mono + timeout;
  while (true) {
    auto more = fill(deadline);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return std::exchange(pending_, {});
  }
}

Result<void> Subprocess::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(input_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(ErrorKind::kClosed, fmt::format("cannot write to process {}: {}", pid_, std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

void Subprocess::close_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

void Subprocess::kill(int signal) {
  if (pid_ > 0 && !status_) ::kill(pid_, signal);
}

bool Subprocess::running() { return pid_ > 0 && !status_ && !wait(Duration::zero()); }

Result<ExitStatus> Subprocess::wait(Duration timeout) {
  const MonoTime deadline = system_clock().now().mono + timeout;
  while (!status_) {
    int status = 0;
    const pid_t done = ::waitpid(pid_, &status, WNOHANG);
    if (done < 0 && errno != EINTR)
      return fail(ErrorKind::kIo, fmt::format("cannot wait for process {}: {}", pid_, std::strerror(errno)));
    if (done == pid_) {
      status_ = ExitStatus{WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    } else if (system_clock().now().mono >= deadline) {
      return fail(ErrorKind::kTimeout, fmt::format("process {} has not ended within {:.0f} ms", pid_, to_ms(timeout)));
    } else {
      std::this_thread::sleep_for(
          std::chrono::milliseconds(2));  // the kernel's other ways to wait with a limit need a descriptor
    }
  }
  return *status_;
}

}  // namespace weir::runtime
