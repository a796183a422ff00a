#include "client/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace weir::client {
namespace {

std::atomic<std::uint64_t> generation{0};

}  // namespace

ForkGuard::ForkGuard() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  generation_ = generation.load(std::memory_order_relaxed);
}

bool ForkGuard::in_child() const { return generation.load(std::memory_order_relaxed) != generation_; }

}  // namespace weir::client
