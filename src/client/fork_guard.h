// After fork() a child has none of our threads: whatever was opened before must answer at once instead of waiting for
// them.
#pragma once

#include <cstdint>

namespace weir::client {

/// Remembers the process an object was opened in. Any thread.
class ForkGuard {
 public:
  ForkGuard();
  /// True in a child forked after this was made: touch no lock, wait for nothing, destroy nothing.
  bool in_child() const;

 private:
  std::uint64_t generation_;
};

}  // namespace weir::client
