#include "runtime/subprocess.h"

#include <gtest/gtest.h>

#include <csignal>

#include "runtime/event_loop.h"
#include "runtime/process.h"
#include "runtime/signals.h"
#include "runtime/temp_directory.h"

namespace weir::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Subprocess, TalksAndEnds) {
  auto child = Subprocess::spawn({.argv = {"sh", "-c", "read x; echo got $x $WEIR_T; echo two; exit 3"},
                                  .environment = {{"WEIR_T", "env"}},
                                  .input = true})
                   .value();
  EXPECT_TRUE(child.running());
  EXPECT_EQ(child.read_line(1ms).error().kind, ErrorKind::kTimeout);
  ASSERT_TRUE(child.write("hello\n"));
  EXPECT_EQ(child.read_line(10s).value(), "got hello env");
  EXPECT_EQ(child.read_until("w", 10s).value(), "two");
  EXPECT_EQ(child.read_line(10s).error().kind, ErrorKind::kClosed);
  EXPECT_EQ(child.wait(10s).value().code, 3);
  EXPECT_FALSE(child.running());
}

TEST(Subprocess, IsKilledWithItsObject) {
  int pid = 0;
  {
    auto child = Subprocess::spawn({.argv = {"sleep", "1000"}}).value();
    pid = child.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
    EXPECT_EQ(child.wait(0ms).error().kind, ErrorKind::kTimeout);
  }
  EXPECT_NE(::kill(pid, 0), 0);
  auto child = Subprocess::spawn({.argv = {"sleep", "1000"}}).value();
  child.kill(SIGTERM);
  EXPECT_EQ(child.wait(10s).value().signal, SIGTERM);
}

TEST(Subprocess, WritesToFilesAndSaysWhatCannotStart) {
  TempDirectory directory;
  auto child = Subprocess::spawn({.argv = {"sh", "-c", "pwd; echo bad >&2"},
                                  .directory = directory.path(),
                                  .output = directory / "out",
                                  .errors = directory / "err"})
                   .value();
  EXPECT_TRUE(child.wait(10s).value().ok());
  EXPECT_EQ(as_text(posix_file_system().read_all(directory / "out", 1000).value()), directory.path().string() + "\n");
  EXPECT_EQ(as_text(posix_file_system().read_all(directory / "err", 1000).value()), "bad\n");
  auto none = Subprocess::spawn({.argv = {"no-such-program-here"}});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no-such-program-here"), std::string::npos);
}

TEST(Signals, ArriveOnTheLoop) {
  EventLoop loop("test");
  std::vector<std::pair<int, int>> seen;
  SignalWatch watch(loop, [&](int signal, int count) {
    seen.emplace_back(signal, count);
    if (count == 2)
      loop.stop();
    else
      std::raise(SIGINT);
  });
  loop.post([] { std::raise(SIGTERM); });
  loop.run();
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{SIGTERM, 1}, {SIGINT, 2}}));
}

}  // namespace
}  // namespace weir::runtime
