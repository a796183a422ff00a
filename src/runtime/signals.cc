#include "runtime/signals.h"

#include <unistd.h>

#include <asio/signal_set.hpp>
#include <csignal>

#include "runtime/reactor.h"

namespace weir::runtime {

// Signals are taken on a thread of their own: the loop they are for may have ended, or its thread may hang in the very
// drain that the third one is to end.
struct SignalWatch::State {
  State(EventLoop& loop, std::function<void(int, int)> callback)
      : on_signal(std::make_shared<std::function<void(int, int)>>(std::move(callback))),
        target(loop),
        set(own.reactor().io, SIGINT, SIGTERM) {}

  void wait() {
    set.async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      if (++count >= 3) ::_exit(128 + signal);
      target.post([call = on_signal, signal, now = count] { (*call)(signal, now); });
      wait();
    });
  }

  std::shared_ptr<std::function<void(int, int)>> on_signal;  // the target loop's
  EventLoop& target;
  EventLoop own{"signals"};
  asio::signal_set set;  // own loop's, as is count
  int count = 0;
};

SignalWatch::SignalWatch(EventLoop& loop, std::function<void(int signal, int count)> on_signal)
    : state_(std::make_shared<State>(loop, std::move(on_signal))) {
  state_->wait();
  state_->own.start();
}

SignalWatch::~SignalWatch() {
  state_->own.stop();
  state_->own.join();
  *state_->on_signal = [](int, int) {};
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace weir::runtime
