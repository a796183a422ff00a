// What an operator may ask over HTTP, checked.
#pragma once

#include <optional>
#include <string>

#include "http/server.h"
#include "weir/flow.h"
#include "weir/types.h"

namespace weir::guard {

enum class OrderKind { kPause, kResume, kLimit };

struct Order {
  Scope scope;
  std::optional<double> records_per_second;
  std::optional<double> bytes_per_second;
  Duration ttl{};
  std::string reason;
};

struct OrderLimits {
  Duration default_ttl{};
  Duration max_ttl{};
};

/// Reads the body, or the query where there is no body: `{"scope":{"topic":"logs","partition":3,"client_id":"app"},
/// "value":1000,"unit":"records/s","ttl":"60s","reason":"..."}`; the members of scope may also stand at the top. An
/// empty order concerns everything. `value` and `unit` (records/s or bytes/s) belong to a limit; a resume has no ttl.
/// Members it does not know are refused, so that a misspelt scope does not become "everything".
Result<Order> parse_order(OrderKind kind, const http::Request& request, const OrderLimits& limits);

/// The directive an order means, until `now` + ttl.
Directive to_directive(OrderKind kind, const Order& order, MonoTime now);

}  // namespace weir::guard
