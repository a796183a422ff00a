#include "client/admin_link.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "protocol/messages/18_api_versions.h"

namespace weir::client {
namespace {

using protocol::ApiKey;
using protocol::ErrorCode;

constexpr Duration kLookAround = std::chrono::milliseconds(100);

ErrorKind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnknownTopicOrPartition:
    case ErrorCode::kUnknownTopicId:
    case ErrorCode::kGroupIdNotFound:
    case ErrorCode::kResourceNotFound: return ErrorKind::kNotFound;
    case ErrorCode::kTopicAlreadyExists: return ErrorKind::kExists;
    case ErrorCode::kUnsupportedVersion: return ErrorKind::kUnsupported;
    case ErrorCode::kRequestTimedOut: return ErrorKind::kTimeout;
    default: return protocol::is_retriable(code) ? ErrorKind::kUnavailable : ErrorKind::kInvalid;
  }
}

}  // namespace

Error refused(const std::string& address, ApiKey api, ErrorCode code, const std::optional<std::string>& message) {
  const bool said = message && !message->empty();
  return {kind_of(code), fmt::format("{} refused {}: {}: {}", address, protocol::name(api), protocol::name(code),
                                     said ? std::string_view(*message) : protocol::message(code))};
}

AdminLink::AdminLink(runtime::BlockingSocket socket, const runtime::Address& peer, const Options& options)
    : socket_(std::move(socket)),
      frames_(options.max_response),
      peer_(peer),
      address_(peer.text()),
      client_id_(options.client_id),
      interrupted_(options.interrupted) {}

Result<std::unique_ptr<AdminLink>> AdminLink::connect(const runtime::Address& address, const Options& options,
                                                      MonoTime deadline) {
  auto socket = runtime::BlockingSocket::connect(address, deadline, options.interrupted);
  if (!socket) return tl::unexpected(socket.error());
  std::unique_ptr<AdminLink> link(new AdminLink(std::move(*socket), address, options));
  if (auto done = link->negotiate(deadline); !done) return tl::unexpected(done.error());
  return link;
}

Result<void> AdminLink::negotiate(MonoTime deadline) {
  using protocol::ApiVersionsRequest;
  using protocol::ApiVersionsResponse;
  // A broker that does not know version 3 says so in a version 0 answer, and is then asked again.
  for (const int version : {3, 0}) {
    const ApiVersionsRequest request{.client_software_name = "weir", .client_software_version = "0.1.0"};
    if (auto sent = send(request, version, deadline); !sent) return sent;
    auto frame = read(ApiKey::kApiVersions, version, deadline);
    if (!frame) return tl::unexpected(frame.error());
    const auto body = frame->body;
    auto response = protocol::decode<ApiVersionsResponse>(frame->body, version);
    if (!response) {
      auto old = body;
      response = protocol::decode<ApiVersionsResponse>(old, 0);
    }
    if (!response) return tl::unexpected(not_kafka(ApiKey::kApiVersions, response.error()));
    if (response->error_code == ErrorCode::kUnsupportedVersion && version > 0) continue;
    if (response->error_code != ErrorCode::kNone) {
      return tl::unexpected(refused(address_, ApiKey::kApiVersions, response->error_code));
    }
    for (const auto& api : response->api_keys) versions_[api.api_key] = {api.min_version, api.max_version};
    return {};
  }
  return tl::unexpected(refused(address_, ApiKey::kApiVersions, ErrorCode::kUnsupportedVersion));
}

Result<int> AdminLink::version_of(ApiKey api, protocol::Versions ours, int cap, int floor) const {
  const auto theirs = versions_.find(static_cast<std::int16_t>(api));
  const auto unsupported = [&](std::string_view what) {
    return fail(ErrorKind::kUnsupported, fmt::format("{} does not serve {}{}", address_, protocol::name(api), what));
  };
  if (theirs == versions_.end()) return unsupported("");
  const int highest = std::min<int>({ours.last, theirs->second.last, cap});
  if (highest < std::max<int>({ours.first, theirs->second.first, floor})) {
    return unsupported(" in a version that this program speaks");
  }
  return highest;
}

Result<void> AdminLink::write(const Payload& frame, ApiKey api, MonoTime deadline) {
  auto bytes = frame.flatten();
  if (!bytes) return tl::unexpected(bytes.error());
  if (auto done = socket_.write(*bytes, deadline); !done) return tl::unexpected(lost(api, done.error()));
  return {};
}

Result<SharedBytes> AdminLink::read_frame(ApiKey api, MonoTime deadline) {
  while (true) {
    auto frame = frames_.next();
    if (!frame) return tl::unexpected(not_kafka(api, frame.error()));
    if (*frame) return std::move(**frame);
    if (interrupted_ != nullptr && *interrupted_) {
      return tl::unexpected(lost(api, {ErrorKind::kClosed, "stopped while waiting for the answer"}));
    }
    const MonoTime now = system_clock().now().mono;
    auto read = socket_.read_some(frames_.space(), std::min(deadline, now + kLookAround));
    if (read && *read == 0) return tl::unexpected(lost(api, {ErrorKind::kUnavailable, "it closed the connection"}));
    if (read) {
      frames_.received(*read);
    } else if (read.error().kind != ErrorKind::kTimeout) {
      return tl::unexpected(lost(api, read.error()));
    } else if (now >= deadline) {
      return tl::unexpected(lost(api, {ErrorKind::kTimeout, "no answer in time"}));
    }
  }
}

Result<protocol::ResponseFrame> AdminLink::read(ApiKey api, int version, MonoTime deadline) {
  auto bytes = read_frame(api, deadline);
  if (!bytes) return tl::unexpected(bytes.error());
  auto frame = protocol::open_response(std::move(*bytes), api, version);
  if (!frame) return tl::unexpected(not_kafka(api, frame.error()));
  if (frame->correlation_id != ++last_read_) {
    return tl::unexpected(not_kafka(api, {ErrorKind::kInvalid, "the answer belongs to another request"}));
  }
  return frame;
}

Error AdminLink::not_kafka(ApiKey api, const Error& why) {
  broken_ = true;
  return {ErrorKind::kInvalid, fmt::format("{} answered {} with bytes that are not Kafka's: {}", address_,
                                           protocol::name(api), why.message)};
}

Error AdminLink::lost(ApiKey api, const Error& why) {
  broken_ = true;
  return {why.kind, fmt::format("{}, asked for {}: {}", address_, protocol::name(api), why.message)};
}

}  // namespace weir::client
