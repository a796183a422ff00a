// Wakes a waiting thread, also when it rings between the look and the wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "weir/types.h"

namespace weir::client {

/// Counts rings. Any thread.
class Bell {
 public:
  void ring() {
    {
      std::lock_guard lock(mutex_);
      ++rings_;
    }
    rung_.notify_all();
  }
  std::uint64_t rings() const {
    std::lock_guard lock(mutex_);
    return rings_;
  }
  /// Until it has rung since `seen`, or `until`.
  void wait(std::uint64_t seen, MonoTime until) {
    std::unique_lock lock(mutex_);
    rung_.wait_until(lock, until, [&] { return rings_ != seen; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
};

}  // namespace weir::client
