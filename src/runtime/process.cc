#include "runtime/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace weir::runtime {
namespace {

std::string proc(int pid, const char* file) {
  return pid == 0 ? fmt::format("/proc/self/{}", file) : fmt::format("/proc/{}/{}", pid, file);
}

/// A "Name:  123 kB" line of /proc/PID/status.
Bytes status_kib(int pid, std::string_view name) {
  std::ifstream in(proc(pid, "status"));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name)) return std::strtoull(line.c_str() + name.size(), nullptr, 10) * kKiB;
  }
  return 0;
}

}  // namespace

Bytes resident_bytes(int pid) { return status_kib(pid, "VmRSS:"); }
Bytes peak_resident_bytes(int pid) { return status_kib(pid, "VmHWM:"); }

Duration cpu_time(int pid) {
  std::ifstream in(proc(pid, "stat"));
  std::string text;
  std::getline(in, text);
  const auto name_end = text.rfind(')');  // the name may hold blanks
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i <= 13; ++i) fields >> skipped;
  std::int64_t user = 0, system = 0;
  fields >> user >> system;
  return std::chrono::nanoseconds((user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
}

std::size_t open_descriptors() {
  auto entries = posix_file_system().list("/proc/self/fd");
  return entries ? entries->size() - 1 : 0;  // one of them was for the listing
}

std::size_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

Path executable_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

Path state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/')
    return Path(state) / "weir";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') {  // as under cron
    const passwd* user = ::getpwuid(::getuid());
    home = user != nullptr ? user->pw_dir : "/";
  }
  return Path(home) / ".local/state/weir";
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

void name_thread(const std::string& name) { ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str()); }

}  // namespace weir::runtime
