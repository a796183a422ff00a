// SIGINT and SIGTERM as calls on a loop.
#pragma once

#include <functional>
#include <memory>

#include "runtime/event_loop.h"

namespace weir::runtime {

/// While it lives, SIGINT and SIGTERM call `on_signal(number, count)` on the loop, count from 1, instead of ending the
/// process. The third one ends the process at once (exit code 128 + number), for a drain that hangs. One per process.
/// Made and destroyed while the loop is not running, or on its thread.
class SignalWatch {
 public:
  SignalWatch(EventLoop& loop, std::function<void(int signal, int count)> on_signal);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A write to a closed pipe or socket then is an error and not the end of the process. Called first in main().
void ignore_broken_pipes();

}  // namespace weir::runtime
