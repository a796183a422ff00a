// One connection of the admin client: a broker, the versions it speaks, requests and their answers in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "protocol/api_key.h"
#include "protocol/codec.h"
#include "protocol/error_code.h"
#include "runtime/address.h"
#include "runtime/blocking_socket.h"
#include "runtime/frame_reader.h"
#include "weir/types.h"

namespace weir::client {

/// "ADDRESS refused API: NAME: message", with the kind that callers should act on.
Error refused(const std::string& address, protocol::ApiKey api, protocol::ErrorCode code,
              const std::optional<std::string>& message = std::nullopt);

/// Owned by one thread. After a failure of the connection itself (time, I/O, bytes that are not Kafka's) it is broken
/// for good.
class AdminLink {
 public:
  struct Options {
    std::string client_id;
    Bytes max_response = 0;
    const std::atomic<bool>* interrupted = nullptr;  ///< Looked at every 100 ms of waiting.
  };
  /// Connects and asks for the versions.
  static Result<std::unique_ptr<AdminLink>> connect(const runtime::Address& address, const Options& options,
                                                    MonoTime deadline);

  const runtime::Address& peer() const { return peer_; }
  const std::string& address() const { return address_; }
  bool broken() const { return broken_; }

  /// The version to use: the highest both sides know, not above `cap`. kUnsupported when there is none of at least
  /// `floor`.
  template <typename Request>
  Result<int> version(int cap = protocol::kOpenEnd, int floor = 0) const {
    return version_of(Request::kApiKey, Request::table().versions, cap, floor);
  }

  /// Sends; answers come in the order of the requests.
  template <typename Request>
  Result<void> send(const Request& request, int version, MonoTime deadline) {
    return write(protocol::encode_request(++last_sent_, client_id_, request, version), Request::kApiKey, deadline);
  }
  template <typename Request>
  Result<typename Request::Response> receive(int version, MonoTime deadline) {
    auto frame = read(Request::kApiKey, version, deadline);
    if (!frame) return tl::unexpected(frame.error());
    auto response = protocol::decode<typename Request::Response>(frame->body, version);
    if (!response) return tl::unexpected(not_kafka(Request::kApiKey, response.error()));
    return response;
  }
  template <typename Request>
  Result<typename Request::Response> ask(const Request& request, MonoTime deadline, int cap = protocol::kOpenEnd) {
    auto chosen = version<Request>(cap);
    if (!chosen) return tl::unexpected(chosen.error());
    if (auto sent = send(request, *chosen, deadline); !sent) return tl::unexpected(sent.error());
    return receive<Request>(*chosen, deadline);
  }

 private:
  AdminLink(runtime::BlockingSocket socket, const runtime::Address& peer, const Options& options);

  Result<void> negotiate(MonoTime deadline);
  Result<int> version_of(protocol::ApiKey api, protocol::Versions ours, int cap, int floor) const;
  Result<void> write(const Payload& frame, protocol::ApiKey api, MonoTime deadline);
  Result<SharedBytes> read_frame(protocol::ApiKey api, MonoTime deadline);
  Result<protocol::ResponseFrame> read(protocol::ApiKey api, int version, MonoTime deadline);
  Error not_kafka(protocol::ApiKey api, const Error& why);
  Error lost(protocol::ApiKey api, const Error& why);

  runtime::BlockingSocket socket_;
  runtime::FrameReader frames_;
  runtime::Address peer_;
  std::string address_;
  std::string client_id_;
  const std::atomic<bool>* interrupted_;
  std::map<std::int16_t, protocol::Versions> versions_;
  std::int32_t last_sent_ = 0;
  std::int32_t last_read_ = 0;
  bool broken_ = false;
};

}  // namespace weir::client
