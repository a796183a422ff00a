#include "runtime/input_stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::runtime {

Result<std::optional<Bytes>> InputStream::read(std::span<std::byte> out, Duration wait) {
  pollfd ready{descriptor_, POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  const int n = ::poll(&ready, 1, static_cast<int>(ms));
  if (n == 0 || (n < 0 && errno == EINTR)) return std::nullopt;
  if (n > 0) {
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got >= 0) return static_cast<Bytes>(got);
    if (errno == EINTR || errno == EAGAIN) return std::nullopt;
  }
  return fail(ErrorKind::kIo, fmt::format("cannot read descriptor {}: {}", descriptor_, std::strerror(errno)));
}

}  // namespace weir::runtime
