// The thread that steps the core of a Producer or a Consumer.
#pragma once

#include <algorithm>
#include <future>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "client/blocked_signals.h"
#include "runtime/process.h"

namespace weir::client {

/// Steps a core until it is finished. It owns what it needs: one that is kept, by a hook or callback that never returns
/// or by a client library that does not end, can be let go.
class StepThread {
 public:
  template <typename Core>
  StepThread(std::shared_ptr<Core> core, const char* name) {
    core->set_threaded();
    BlockedSignals blocked;
    std::promise<void> end;
    ended_ = end.get_future();
    thread_ = std::thread([core = std::move(core), name, end = std::move(end)]() mutable {
      runtime::name_thread(name);
      while (!core->finished()) {
        const MonoTime next = core->step();
        core->wait_for_work(std::min(next, system_clock().now().mono + std::chrono::milliseconds(100)));
      }
      core->release_transport();
      end.set_value();
    });
  }

  /// Call it once, when the core has been closed. `inside`: by the thread itself.
  void end(bool inside) {
    if (!inside && ended_.wait_for(kGrace) == std::future_status::ready) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

 private:
  static constexpr Duration kGrace = std::chrono::seconds(1);  // for the client library's own threads to end
  std::thread thread_;
  std::future<void> ended_;
};

}  // namespace weir::client
