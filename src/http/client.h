// A small HTTP/1.1 client: agents ask the guard for directives with it, and tests ask everything.
#pragma once

#include <string>
#include <string_view>

#include "http/server.h"
#include "weir/types.h"

namespace weir::http {

struct Reply {
  int status = 0;
  std::string content_type;
  std::string body;
};

/// Sends one request and reads the whole reply, `timeout` for everything, at most 8 MiB of body. Blocks the calling
/// thread; any thread. Kinds: kUnavailable when nobody answers at `address`, kTimeout, kInvalid for what is not HTTP.
/// The message names the address.
Result<Reply> request(const Address& address, std::string_view method, std::string_view target,
                      std::string_view body = {}, Duration timeout = std::chrono::seconds(5));

inline Result<Reply> get(const Address& address, std::string_view target, Duration timeout = std::chrono::seconds(5)) {
  return request(address, "GET", target, {}, timeout);
}
inline Result<Reply> post(const Address& address, std::string_view target, std::string_view body,
                          Duration timeout = std::chrono::seconds(5)) {
  return request(address, "POST", target, body, timeout);
}

/// Percent-encodes what may not stand in one part of a path or in a query value.
std::string url_encode(std::string_view text);

}  // namespace weir::http
