// A bounded queue between two loops: full and closed are outcomes, not errors.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "weir/types.h"

namespace weir {

/// Many producers, many consumers. Every function may be called from any thread.
template <typename T>
class BoundedQueue {
 public:
  enum class Push { kOk, kFull, kClosed };

  /// `capacity`: items held at most, at least 1.
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) { WEIR_ASSERT(capacity > 0); }

  /// Never waits. On kFull and kClosed `item` is left as it was.
  Push try_push(T& item) {
    {
      std::lock_guard lock(mutex_);
      if (closed_) return Push::kClosed;
      if (items_.size() >= capacity_) return Push::kFull;
      items_.push_back(std::move(item));
    }
    not_empty_.notify_one();
    return Push::kOk;
  }

  /// Waits for room up to `timeout`; kFull when there was none.
  Push push(T& item, Duration timeout) {
    {
      std::unique_lock lock(mutex_);
      if (!not_full_.wait_for(lock, timeout, [&] { return closed_ || items_.size() < capacity_; })) return Push::kFull;
      if (closed_) return Push::kClosed;
      items_.push_back(std::move(item));
    }
    not_empty_.notify_one();
    return Push::kOk;
  }

  /// The oldest item, waiting up to `timeout` for one. Nothing when none came or the queue is closed and drained.
  std::optional<T> pop(Duration timeout) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, timeout, [&] { return closed_ || !items_.empty(); });
    return take(lock);
  }
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    return take(lock);
  }

  /// No more pushes; what is inside can still be popped. Wakes everyone.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::optional<T> take(std::unique_lock<std::mutex>& lock) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return item;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace weir
