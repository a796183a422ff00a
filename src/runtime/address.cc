#include "runtime/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace weir::runtime {

std::string Address::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<Address> parse_address(std::string_view text, std::uint16_t default_port) {
  const auto wrong = [&] {
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' is not an address: write HOST:PORT, as in 127.0.0.1:9092", text));
  };
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return wrong();
    host = text.substr(1, close - 1);
    std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return wrong();
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
    if (host.empty()) return wrong();
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) return wrong();  // an IPv6 number without brackets
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
    if (host.empty()) host = "127.0.0.1";
  }
  if (host.empty() || host.find_first_of(" /\t,") != std::string_view::npos) return wrong();
  Address address{std::string(host), default_port};
  if (!has_port) {
    if (default_port == 0) return wrong();
    return address;
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return wrong();
  return address;
}

bool is_ip_number(const std::string& host) {
  in6_addr bytes;
  return ::inet_pton(AF_INET, host.c_str(), &bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
}

Result<std::vector<Address>> parse_addresses(std::string_view text, std::uint16_t default_port) {
  std::vector<Address> addresses;
  while (true) {
    const auto comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    auto address = parse_address(one, default_port);
    if (!address) return tl::unexpected(address.error());
    addresses.push_back(std::move(*address));
    if (comma == std::string_view::npos) return addresses;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace weir::runtime
