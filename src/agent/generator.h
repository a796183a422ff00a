// The generator: synthetic log entries on a schedule, from 64 servers, 90 % INFO, 8 % WARN, 2 % ERROR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/types.h"

namespace weir::agent {

/// Entry number n is due at start + n / rate, whatever happened to those before it: a closed gate makes it fall behind
/// and nothing is hidden by that. The same number always gives the same entry. Owned by one thread.
class Generator {
 public:
  Generator(double per_second, MonoTime start) : per_second_(per_second), start_(start) {}

  /// Entries due by `now`.
  std::uint64_t due(MonoTime now) const;
  MonoTime due_at(std::uint64_t number) const { return start_ + from_seconds(double(number) / per_second_); }

  struct Synthetic {
    std::string server_id;
    std::string_view level;
    std::string message;
  };
  static Synthetic entry(std::uint64_t number);

 private:
  double per_second_;
  MonoTime start_;
};

}  // namespace weir::agent
