// A request as the core sees it: framed and decoded by an io loop, named so that its answer finds the way back.
//
// Thread rule: built by an io loop, then owned by the core loop. `message` is immutable and may be read from any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "weir/types.h"

namespace weir::broker {

/// One client connection. Never used twice while the process lives.
using ConnectionId = Strong<struct ConnectionIdTag, std::uint64_t>;
/// One request. Never used twice while the process lives; 0 is nobody (work the broker does by itself).
using RequestId = Strong<struct RequestIdTag, std::uint64_t>;

inline constexpr RequestId kNoRequest{0};

struct Request {
  RequestId id;
  ConnectionId connection;
  std::int16_t api_key = 0;
  std::int16_t version = 0;
  std::int32_t correlation_id = 0;
  std::string client_id;    ///< As sent; empty when null.
  std::string client_host;  ///< As Kafka prints it: "/127.0.0.1".
  Bytes size = 0;           ///< The frame without its length field: what quotas count.
  Bytes memory = 0;         ///< About what it takes while it is open: what the request queue counts.
  /// The decoded request struct of `api_key` (protocol::HeartbeatRequest and so on). Null only for an ApiVersions
  /// request of a version we do not know, which is answered all the same, as version 0.
  std::shared_ptr<const void> message;
  /// What the io loop worked out beside decoding, so that the core loop need not: CheckedProduce for Produce.
  std::shared_ptr<const void> prepared;

  /// The message as its struct. `T` must be the request struct of `api_key`: the api table pairs them.
  template <typename T>
  const T& as() const {
    WEIR_ASSERT(message != nullptr);
    return *static_cast<const T*>(message.get());
  }
};

/// The response struct that answers a request, still unencoded: the io loop encodes it for the request's version. Null
/// when there is nothing to send.
using Response = std::shared_ptr<const void>;

/// Wraps a response struct. `T` must be the response struct of the request's api key.
template <typename T>
Response respond(T message) {
  return std::make_shared<const T>(std::move(message));
}

}  // namespace weir::broker
