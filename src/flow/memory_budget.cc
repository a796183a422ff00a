#include "flow/memory_budget.h"

#include "base/assert.h"

namespace weir::flow {

std::optional<Charge> MemoryBudget::try_charge(Bytes bytes) {
  Bytes used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return std::nullopt;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  Bytes peak = peak_.load(std::memory_order_relaxed);
  while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  return Charge(this, bytes);
}

void MemoryBudget::release(Bytes bytes) {
  const Bytes before = used_.fetch_sub(bytes, std::memory_order_relaxed);
  WEIR_ASSERT(before >= bytes);
}

}  // namespace weir::flow
