// HOST:PORT as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::runtime {

/// A host (name or number, without brackets) and a port.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  auto operator<=>(const Address&) const = default;
  /// "host:port", with brackets around an IPv6 number.
  std::string text() const;
};

/// Reads "127.0.0.1:9092", "[::1]:9092", "localhost:9092", ":9092" (127.0.0.1). Without a port, `default_port` is taken
/// unless it is 0.
Result<Address> parse_address(std::string_view text, std::uint16_t default_port = 0);
/// A comma-separated list of them, as bootstrap.servers has; at least one.
Result<std::vector<Address>> parse_addresses(std::string_view text, std::uint16_t default_port = 0);

/// "127.0.0.1", "::1": no name that must be looked up.
bool is_ip_number(const std::string& host);

}  // namespace weir::runtime
