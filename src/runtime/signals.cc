#include "runtime/signals.h"

#include <unistd.h>

#include <asio/signal_set.hpp>
#include <csignal>

#include "runtime/reactor.h"

namespace weir::runtime {

struct SignalWatch::State : std::enable_shared_from_this<State> {
  State(EventLoop& loop, std::function<void(int, int)> callback)
      : set(loop.reactor().io, SIGINT, SIGTERM), on_signal(std::move(callback)) {}

  void wait() {
    set.async_wait([self = shared_from_this()](const asio::error_code& error, int signal) {
      if (error) return;
      if (++self->count >= 3) ::_exit(128 + signal);
      self->on_signal(signal, self->count);
      self->wait();
    });
  }

  asio::signal_set set;
  std::function<void(int, int)> on_signal;
  int count = 0;
};

SignalWatch::SignalWatch(EventLoop& loop, std::function<void(int signal, int count)> on_signal)
    : state_(std::make_shared<State>(loop, std::move(on_signal))) {
  state_->wait();
}

SignalWatch::~SignalWatch() {
  state_->set.cancel();
  state_->on_signal = [](int, int) {};
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace weir::runtime
