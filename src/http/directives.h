// How directives travel from the guard to producers: as JSON over HTTP, with a time to live instead of a moment,
// because clocks differ.
//
//   GET /api/directives?client_id=C&topics=T,U&laws=true  ->
//   {"directives":[{"scope":{"topic":"logs","partition":3},"pause":false,
//       "records_per_second":2940.0,"ttl_ms":10000,"reason":"...","signal":{"kind":"lag_time","value":5.1}}]}
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "http/client.h"
#include "weir/flow.h"
#include "weir/types.h"

namespace weir::http {

std::string directives_to_json(std::span<const Directive> directives, MonoTime now);
/// Untrusted text: unknown members are skipped, a directive without a scope or a ttl, with a rate of 0 or a ttl above
/// an hour is refused. Expiries are on this process's clock.
Result<std::vector<Directive>> directives_from_json(std::string_view text, MonoTime now);

/// Asks the guard at `address` what concerns `client_id` writing to `topics` (none: all). `laws` false: the operator's
/// orders only, for a producer whose end-to-end window does the laws' work. Blocks up to `timeout`.
Result<std::vector<Directive>> fetch_directives(const Address& address, const std::string& client_id,
                                                const std::vector<std::string>& topics, bool laws, const Clock& clock,
                                                Duration timeout = std::chrono::seconds(1));

}  // namespace weir::http
