#include "broker/request_queue.h"

#include <utility>

#include "base/assert.h"

namespace weir::broker {

bool RequestQueue::room_or(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  if (has_room()) return true;
  waiting_.push_back(std::move(wake));
  return false;
}

void RequestQueue::admit(Bytes size) {
  std::lock_guard lock(mutex_);
  ++requests_;
  bytes_ += static_cast<std::int64_t>(size);
}

void RequestQueue::release(Bytes size) {
  std::vector<std::function<void()>> wake;
  {
    std::lock_guard lock(mutex_);
    WEIR_ASSERT(requests_ > 0);
    --requests_;
    bytes_ -= static_cast<std::int64_t>(size);
    if (has_room()) wake.swap(waiting_);
  }
  for (const auto& call : wake) call();
}

std::size_t RequestQueue::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

Bytes RequestQueue::bytes() const {
  std::lock_guard lock(mutex_);
  return static_cast<Bytes>(bytes_);
}

}  // namespace weir::broker
