// Which APIs are served, in which versions: the one table that decoding, ApiVersions and docs/compat.md follow.
#pragma once

#include <memory>
#include <span>

#include "broker/handlers/handler.h"
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
};

/// By key.
std::span<const Api> apis();
/// Null for an API that is not served. Any thread.
const Api* find_api(std::int16_t key);

/// Decodes the request struct of `api`. Any thread.
Result<std::shared_ptr<const void>> decode_request(const Api& api, int version, wire::Reader& body);

}  // namespace weir::broker
