// One budget over every stage: who holds bytes on the way to the acknowledgement charges them here.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include "weir/types.h"

namespace weir::flow {

class MemoryBudget;

/// Bytes held, given back when it goes. Move-only. Any thread; must not outlive its budget.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() { release(); }

  void release();
  Bytes bytes() const { return bytes_; }

 private:
  friend class MemoryBudget;
  Charge(MemoryBudget* budget, Bytes bytes) : budget_(budget), bytes_(bytes) {}
  MemoryBudget* budget_ = nullptr;
  Bytes bytes_ = 0;
};

/// `buffer.memory`. Never exceeded: a charge that does not fit is refused, and one larger than the whole limit never
/// fits (check `limit()` first and reject it as too large). Atomic counters: any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(Bytes limit) : limit_(limit) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  std::optional<Charge> try_charge(Bytes bytes);
  Bytes used() const { return used_.load(std::memory_order_relaxed); }
  Bytes peak() const { return peak_.load(std::memory_order_relaxed); }
  Bytes limit() const { return limit_; }

 private:
  friend class Charge;
  void release(Bytes bytes);

  const Bytes limit_;
  std::atomic<Bytes> used_{0};
  std::atomic<Bytes> peak_{0};
};

inline void Charge::release() {
  if (auto* budget = std::exchange(budget_, nullptr)) budget->release(std::exchange(bytes_, 0));
}

}  // namespace weir::flow
