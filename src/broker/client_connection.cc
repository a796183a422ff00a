#include "broker/client_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/server.h"
#include "broker/server_metrics.h"
#include "broker/stranger.h"
#include "protocol/codec.h"

namespace weir::broker {
namespace {

/// "127.0.0.1:51234" as Kafka shows clients: "/127.0.0.1".
std::string host_of(const std::string& peer) { return "/" + peer.substr(0, peer.rfind(':')); }

}  // namespace

ClientConnection::ClientConnection(IoLoop& io, ConnectionId id, std::shared_ptr<runtime::Connection> socket)
    : io_(io),
      id_(id),
      socket_(std::move(socket)),
      client_host_(host_of(socket_->peer())),
      frames_(static_cast<Bytes>(io.server().config().socket_request_max_bytes)),
      last_active_(io.loop().now().mono) {}

// ---- Requests
// ------------------------------------------------------------------------------------------------------------

void ClientConnection::received(Bytes n) {
  last_active_ = io_.loop().now().mono;
  frames_.received(n);
  go_on();
}

void ClientConnection::go_on() {
  if (taking_) return;  // An answer that came at once: the loop below goes on anyway.
  taking_ = true;
  bool more = true;
  while (more && !closing_) {
    if (muted() || waiting_.size() >= kMaxOpen || socket_->unsent() + held_ > kMaxUnsent || !room_in_queue()) {
      more = false;
      break;
    }
    auto frame = frames_.next();
    if (!frame) {
      refuse(frame.error().message, "frame");
      break;
    }
    if (!*frame) break;
    if (!take_request(std::move(**frame))) break;
  }
  taking_ = false;
  if (closing_) return;
  if (more == socket_->reading_paused()) more ? socket_->resume_reading() : socket_->pause_reading();
}

bool ClientConnection::room_in_queue() {
  if (wants_room_) return false;
  wants_room_ = !io_.server().queue().room_or([&io = io_, id = id_] { io.loop().post([&io, id] { io.room(id); }); });
  return !wants_room_;
}

bool ClientConnection::take_request(SharedBytes frame) {
  const Bytes size = frame.size();
  auto opened = protocol::open_request(std::move(frame));
  if (!opened) return refuse(opened.error().message, "header");
  const auto& header = opened->header;
  const Api* api = find_api(header.request_api_key);
  if (api == nullptr) {
    return refuse(
        fmt::format("API {} is not served", protocol::name(static_cast<protocol::ApiKey>(header.request_api_key))),
        "api");
  }
  Request request{.id = io_.server().next_request_id(),
                  .connection = id_,
                  .api_key = header.request_api_key,
                  .version = header.request_api_version,
                  .correlation_id = header.correlation_id,
                  .client_id = header.client_id.value_or(""),
                  .client_host = client_host_,
                  .size = size,
                  .memory = size};
  const int version = header.request_api_version;
  if (!api->served.has(version)) {
    if (api->key != protocol::ApiKey::kApiVersions) {
      return refuse(fmt::format("{} version {} is not served", protocol::name(api->key), version), "version");
    }
    request.version = 0;  // Answered in the form every client reads.
  } else if (auto done = decode_request(*api, opened->body, request); !done) {
    return refuse(done.error().message, "decode");
  }
  greeted_ = true;
  io_.server().queue().admit(request.memory);
  waiting_.push_back({.id = request.id,
                      .api = api,
                      .version = request.version,
                      .correlation_id = request.correlation_id,
                      .memory = request.memory,
                      .since = io_.loop().now().mono,
                      .client_id = request.client_id});
  io_.server().to_core(std::move(request));
  return true;
}

bool ClientConnection::refuse(const std::string& why, const char* reason) {
  std::string guess = greeted_ ? std::string() : guess_stranger(frames_.pending());
  io_.complain(socket_->peer(), guess.empty() ? why : guess, reason,
               guess.empty() ? reason : std::string_view(guess).substr(0, guess.find(';')));
  close(why);
  return false;
}

// ---- Answers
// -------------------------------------------------------------------------------------------------------------

ClientConnection::Waiting* ClientConnection::find(RequestId request) {
  const auto it = std::ranges::find(waiting_, request, &Waiting::id);
  return it == waiting_.end() ? nullptr : &*it;
}

void ClientConnection::answer(RequestId request, const Response& response, Duration mute) {
  Waiting* waiting = find(request);
  if (waiting == nullptr) return;
  waiting->answer = protocol::encode_response(waiting->api->response(), response.get(), waiting->api->key,
                                              waiting->version, waiting->correlation_id);
  finish(*waiting, mute);
}

void ClientConnection::skip(RequestId request, Duration mute) {
  if (Waiting* waiting = find(request)) finish(*waiting, mute);
}

void ClientConnection::finish(Waiting& waiting, Duration how_long) {
  const MonoTime now = io_.loop().now().mono;
  last_active_ = now;
  waiting.done = true;
  held_ += waiting.answer.size();
  uncount(waiting);
  const auto api_key = static_cast<std::int16_t>(waiting.api->key);
  const std::string client_id = std::move(waiting.client_id);
  io_.server().metrics().answered(api_key, now - waiting.since);
  while (!waiting_.empty() && waiting_.front().done) {
    Payload answer = std::move(waiting_.front().answer);
    held_ -= answer.size();
    waiting_.pop_front();
    if (!answer.empty() && !closing_) socket_->send(std::move(answer));
  }
  if (how_long > Duration::zero()) {
    io_.server().metrics().throttled(client_id, api_key, how_long);
    mute(how_long);
  }
  go_on();
}

void ClientConnection::uncount(RequestId request) {
  if (Waiting* waiting = find(request)) uncount(*waiting);
}

void ClientConnection::uncount(Waiting& waiting) {
  if (!waiting.counted) return;
  waiting.counted = false;
  io_.server().queue().release(waiting.memory);
}

bool ClientConnection::idle_since(MonoTime when) {
  if (std::exchange(unsent_, socket_->unsent()) != socket_->unsent()) last_active_ = io_.loop().now().mono;
  return last_active_ < when && waiting_.empty();
}

void ClientConnection::mute(Duration duration) {
  if (closing_) return;
  const MonoTime until = io_.loop().now().mono + duration;
  if (muted()) {
    if (until <= muted_until_) return;
    io_.loop().cancel(unmute_);
  }
  muted_until_ = until;
  unmute_ = io_.loop().call_after(duration, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->unmute_ = runtime::kNoTimer;
    self->go_on();
  });
}

// ---- The end
// -------------------------------------------------------------------------------------------------------------

void ClientConnection::close(const std::string& reason) {
  closing_ = true;
  socket_->close(reason);
}

void ClientConnection::close_when_sent(const std::string& reason) {
  closing_ = true;
  socket_->close_when_sent(reason);
}

void ClientConnection::closed(const Error&) {
  closing_ = true;
  if (muted()) io_.loop().cancel(unmute_);
  for (Waiting& waiting : waiting_) uncount(waiting);
  io_.closed(id_);
}

}  // namespace weir::broker
