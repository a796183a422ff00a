// Bytes from a pipe, a terminal or standard input: read as they come, never longer waited for than said.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "weir/types.h"

namespace weir::runtime {

/// Reads a descriptor that somebody else owns and closes. One thread.
class InputStream {
 public:
  static constexpr int kStandardInput = 0;

  explicit InputStream(int descriptor = kStandardInput) : descriptor_(descriptor) {}
  /// Waits up to `wait` for bytes. None: nothing came; 0: the end.
  Result<std::optional<Bytes>> read(std::span<std::byte> out, Duration wait);

 private:
  int descriptor_;
};

}  // namespace weir::runtime
