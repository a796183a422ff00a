// How many requests are decoded and not answered, and how many bytes: the bound behind queued.max.requests and
// queued.max.request.bytes. Full means that sockets are not read, so TCP pushes back.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "weir/types.h"

namespace weir::broker {

/// Counts only; the requests themselves are on their way through the loops. Any thread.
class RequestQueue {
 public:
  /// `max_bytes` below 0: no bound of bytes.
  RequestQueue(std::size_t max_requests, std::int64_t max_bytes)
      : max_requests_(max_requests), max_bytes_(max_bytes < 0 ? INT64_MAX : max_bytes) {}

  /// True when one more request may be read. When not, `wake` is called once, from whichever thread makes room.
  bool room_or(std::function<void()> wake);
  /// Counts a request that was read after room_or(). One request may overshoot the bytes: its size is known only then.
  void admit(Bytes size);
  void release(Bytes size);

  std::size_t requests() const;
  Bytes bytes() const;

 private:
  bool has_room() const { return requests_ < max_requests_ && bytes_ < max_bytes_; }

  const std::size_t max_requests_;
  const std::int64_t max_bytes_;
  mutable std::mutex mutex_;
  std::size_t requests_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace weir::broker
