// Which APIs are served, in which versions: the one table that decoding, ApiVersions and docs/compat.md follow.
#pragma once

#include <memory>
#include <span>

#include "broker/handlers/handler.h"
#include "broker/request.h"
#include "protocol/api_key.h"
#include "protocol/field_table.h"
#include "wire/reader.h"

namespace weir::broker {

struct Api {
  protocol::ApiKey key;
  protocol::Versions served;
  protocol::Versions advertised;  ///< The same, but for Produce (see api_table.cc).
  const protocol::Table& (*request)();
  const protocol::Table& (*response)();
  Handler handler;
  /// Work on the decoded message that needs no state (CRCs): done on the io loop, kept in Request::prepared. Null:
  /// none.
  std::shared_ptr<const void> (*prepare)(const void* message, int version) = nullptr;
};

/// By key.
std::span<const Api> apis();
/// Null for an API that is not served. Any thread.
const Api* find_api(std::int16_t key);

/// Decodes `body` as the request struct of `api` and `request.version`, and prepares it. Refuses what would need
/// unreasonable memory. Any thread.
Result<void> decode_request(const Api& api, wire::Reader& body, Request& request);

}  // namespace weir::broker
