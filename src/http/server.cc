#include "http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "http/router.h"
#include "runtime/process.h"

namespace weir::http {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using tcp = net::ip::tcp;
using boost::system::error_code;

constexpr Bytes kStreamBacklog = 256 * kKiB;
constexpr int kPortsToTry = 20;

/// A web page elsewhere may not steer this server through its reader's browser. Programs send neither header.
bool foreign_origin(const bhttp::request<bhttp::string_body>& request) {
  const std::string_view site = request["Sec-Fetch-Site"];
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  const auto origin = request.find(bhttp::field::origin);
  if (origin == request.end()) return false;
  const std::string_view value = origin->value();
  const auto scheme = value.find("://");
  return scheme == std::string_view::npos || value.substr(scheme + 3) != std::string_view(request[bhttp::field::host]);
}

/// Nor by a name of its own that it has pointed at this machine.
bool foreign_host(const bhttp::request<bhttp::string_body>& request, const std::vector<std::string>& names) {
  std::string_view host = request[bhttp::field::host];
  if (host.starts_with('[')) {
    host = host.substr(1, host.find(']') - 1);
  } else {
    host = host.substr(0, host.rfind(':'));
  }
  error_code error;
  net::ip::make_address(host, error);
  return !host.empty() && error && std::find(names.begin(), names.end(), host) == names.end();
}

}  // namespace

const std::string& Request::param(const std::string& name) const {
  static const std::string kNone;
  const auto found = params.find(name);
  return found == params.end() ? kNone : found->second;
}

Response error_response(int status, std::string_view message) {
  using nlohmann::json;
  return {.status = status,
          .body = json{{"error", message}}.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"};
}

class Server::State : public std::enable_shared_from_this<Server::State> {
 public:
  class Connection;
  class EventStream;

  explicit State(ServerSettings given) : settings(std::move(given)), acceptor(io), stop_deadline(io) {
    settings.names.insert(settings.names.end(), {"localhost", runtime::host_name()});
  }

  Result<Address> start();
  void stop();
  void accept();
  template <typename Act>
  void for_each_connection(Act act);
  /// Room for one more connection, made by ending the one that has waited longest. False when all are being answered.
  bool make_room();

  ServerSettings settings;  // constant once made
  Router router;
  net::io_context io{1};
  tcp::acceptor acceptor;
  net::steady_timer stop_deadline;
  std::unordered_set<Connection*> connections;  // Server thread.
  std::uint64_t waits = 0;                      // Server thread: so often has a connection begun to wait.
  bool stopping = false;                        // Server thread.
  Address address;
  bool loopback = false;  // it listens for this machine only
  std::thread thread;
};

/// The half of a stream that handlers hold; the connection, on the server's thread, takes what it has collected.
class Server::State::EventStream final : public Stream {
 public:
  EventStream(std::weak_ptr<Connection> connection, std::shared_ptr<State> state)
      : connection_(std::move(connection)), state_(std::move(state)) {}

  bool send(std::string_view event, std::string_view data) override;
  bool closed() const override {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  void close() override {
    std::lock_guard lock(mutex_);
    closed_ = true;
    wake();
  }
  /// Server thread: everything collected since the last call.
  std::string take() {
    std::lock_guard lock(mutex_);
    woken_ = false;
    return std::exchange(pending_, {});
  }

 private:
  void wake();

  mutable std::mutex mutex_;
  std::string pending_;
  bool closed_ = false;
  bool woken_ = false;
  std::weak_ptr<Connection> connection_;
  std::shared_ptr<State> state_;
};

/// One accepted socket: reads a request, answers it, reads the next; or, once it is a stream, writes events until
/// either side ends. Server thread.
class Server::State::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, tcp::socket socket) : state_(std::move(state)), stream_(std::move(socket)) {
    state_->connections.insert(this);
  }
  ~Connection() {
    state_->connections.erase(this);
    if (state_->connections.empty()) state_->stop_deadline.cancel();
    if (events_) events_->close();
  }

  void read_next() {
    waits_since_ = ++state_->waits;
    if (buffer_.size() > 0) return read_request();
    stream_.expires_after(state_->settings.idle_timeout);
    idle_ = true;
    stream_.async_read_some(buffer_.prepare(4096), [self = shared_from_this()](error_code error, std::size_t size) {
      self->idle_ = false;
      if (error) return;
      self->buffer_.commit(size);
      self->read_request();
    });
  }

  void write_events() {
    if (writing_ || !events_) return;
    out_ = events_->take();
    if (out_.empty()) {
      if (events_->closed()) end();
      return;
    }
    write_raw();
  }

  /// When it began to wait for its peer, in the order of all; nothing while it is being answered, or when it has ended.
  std::optional<std::uint64_t> waits_since() const {
    if (ended_ || message_ || writing_) return std::nullopt;
    return waits_since_;
  }

  /// Idle connections and streams end now; an answer that is being written ends the connection after it.
  void wind_down() {
    last_ = true;
    if (events_) events_->close();
    if (idle_) end();
  }

  void end() {
    ended_ = true;
    if (events_) events_->close();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

 private:
  void read_request() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(state_->settings.max_head));
    parser_->body_limit(state_->settings.max_body);
    stream_.expires_after(state_->settings.read_timeout);
    bhttp::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) return self->answer();
      if (error == bhttp::error::header_limit) return self->refuse(431, "the request's headers are too long");
      if (error == bhttp::error::body_limit) return self->refuse(413, "the request's body is too long");
      if (error.category() == make_error_code(bhttp::error::bad_method).category() &&
          error != bhttp::error::end_of_stream && error != bhttp::error::partial_message) {
        return self->refuse(400, "this is not an HTTP/1.1 request: " + error.message());
      }
    });
  }

  void refuse(int status, std::string_view message) {
    last_ = true;
    unread_ = true;
    write(error_response(status, message), false);
  }

  void answer() {
    const auto& request = parser_->get();
    const bool head = request.method() == bhttp::verb::head;
    last_ = last_ || !request.keep_alive();
    const bool changes = request.method() != bhttp::verb::get && !head;
    const bool from_page = request.find(bhttp::field::origin) != request.end();
    if ((state_->loopback || (changes && from_page)) && foreign_host(request, state_->settings.names)) {
      return write(error_response(403,
                                  "this server does not go by that name: ask it by its IP address, or add the name "
                                  "to its settings (guard: names)"),
                   head);
    }
    if (changes && foreign_origin(request)) {
      return write(error_response(403, "a page from another site may not change anything here"), false);
    }
    auto match = state_->router.find(std::string_view(request.method_string()), std::string_view(request.target()));
    if (match.route == nullptr) {
      Response response = error_response(match.status, match.complaint);
      if (!match.allow.empty()) response.headers.emplace_back("Allow", match.allow);
      return write(std::move(response), head);
    }
    match.request.body = std::move(parser_->get().body());
    if (match.route->stream && !head) return open_stream(*match.route, match.request);
    if (match.route->stream) return write({.content_type = "text/event-stream"}, head);
    Response response;
    try {
      response = match.route->handler(match.request);
    } catch (const std::exception& error) {
      response = error_response(500, fmt::format("{} failed: {}", match.request.path, error.what()));
    }
    write(std::move(response), head);
  }

  void write(Response response, bool head) {
    bhttp::response<bhttp::string_body> message(static_cast<bhttp::status>(response.status), 11);
    message.set(bhttp::field::server, "weir");
    message.set(bhttp::field::content_type, response.content_type);
    message.set(bhttp::field::cache_control, "no-store");
    message.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(!last_);
    message.content_length(response.body.size());
    if (!head) message.body() = std::move(response.body);
    message_ = std::move(message);
    serializer_.emplace(*message_);
    stream_.expires_after(state_->settings.write_timeout);
    bhttp::async_write(stream_, *serializer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return;
      self->serializer_.reset();
      self->message_.reset();
      if (self->unread_) return self->discard_rest();
      if (self->last_ || self->state_->stopping) return self->end();
      self->read_next();
    });
  }

  /// Closing with unread bytes would reset the connection, and the peer would never see why it was refused.
  void discard_rest() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(1));
    discard_more();
  }
  void discard_more() {
    stream_.async_read_some(net::buffer(scratch_), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->end();
      self->discard_more();
    });
  }

  void open_stream(const Router::Route& route, const Request& request) {
    waits_since_ = ++state_->waits;
    events_ = std::make_shared<EventStream>(weak_from_this(), state_);
    out_ =
        "HTTP/1.1 200 OK\r\nServer: weir\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n";
    write_raw();
    watch_for_end();
    try {
      route.stream(request, events_);
    } catch (const std::exception& error) {
      log::warn("http: {} failed: {}", request.path, error.what());
      events_->close();
    }
  }

  void write_raw() {
    writing_ = true;
    stream_.expires_after(state_->settings.write_timeout);
    net::async_write(stream_, net::buffer(out_), [self = shared_from_this()](error_code error, std::size_t) {
      self->writing_ = false;
      if (error) return self->end();
      self->stream_.expires_never();
      self->write_events();
    });
  }

  /// A reader of events sends nothing more: whatever arrives is its end.
  void watch_for_end() {
    stream_.socket().async_read_some(net::buffer(scratch_), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->end();
      self->watch_for_end();
    });
  }

  const std::shared_ptr<State> state_;  // First, so that the socket goes before the loop it lives on.
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::request_parser<bhttp::string_body>> parser_;
  std::optional<bhttp::response<bhttp::string_body>> message_;
  std::optional<bhttp::response_serializer<bhttp::string_body>> serializer_;
  std::shared_ptr<EventStream> events_;
  std::string out_;
  std::array<char, 2048> scratch_{};
  bool idle_ = false;
  bool last_ = false;    // The connection ends with the present answer.
  bool unread_ = false;  // The present request was refused before all of it was read.
  bool writing_ = false;
  bool ended_ = false;
  std::uint64_t waits_since_ = 0;
};

bool Server::State::EventStream::send(std::string_view event, std::string_view data) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  pending_ += fmt::format("event: {}\n", event);
  while (true) {  // A line break inside the data starts another data line; the reader joins them again.
    const auto end = data.find('\n');
    pending_ += fmt::format("data: {}\n", data.substr(0, end));
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  pending_ += '\n';
  if (pending_.size() > kStreamBacklog) {
    pending_.clear();
    closed_ = true;
  }
  wake();
  return !closed_;
}

void Server::State::EventStream::wake() {
  if (woken_) return;
  woken_ = true;
  net::post(state_->io, [connection = connection_] {
    if (const auto alive = connection.lock()) alive->write_events();
  });
}

Result<Address> Server::State::start() {
  const std::string host = settings.host == "localhost" ? "127.0.0.1" : settings.host;
  error_code error;
  const auto ip = net::ip::make_address(host, error);
  if (error) {
    return fail(ErrorKind::kInvalid, fmt::format("cannot listen on \"{}\": it is not an IP address", settings.host));
  }
  const int tries = settings.next_free_port && settings.port != 0 ? kPortsToTry : 1;
  for (int i = 0; i < tries; ++i) {
    const tcp::endpoint endpoint(ip, static_cast<std::uint16_t>(settings.port + i));
    error = {};
    acceptor.close(error);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
    if (error != net::error::address_in_use || settings.port + i == 65535) break;
  }
  const std::string wanted = Address{host, settings.port}.text();
  if (error == net::error::address_in_use) {
    return fail(
        ErrorKind::kExists,
        fmt::format("cannot listen on {}: the port is taken; choose another one, or stop what uses it", wanted));
  }
  if (error) return fail(ErrorKind::kIo, fmt::format("cannot listen on {}: {}", wanted, error.message()));
  address = {host, acceptor.local_endpoint(error).port()};
  loopback = ip.is_loopback();
  accept();
  thread = std::thread([this] { io.run(); });
  return address;
}

void Server::State::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (stopping || error == net::error::operation_aborted) return;
    if (!error && make_room()) {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      std::make_shared<Connection>(shared_from_this(), std::move(socket))->read_next();
    }
    if (!error) return accept();
    // Out of descriptors: closing connections will free some; do not spin until then.
    auto pause = std::make_shared<net::steady_timer>(io, std::chrono::milliseconds(100));
    pause->async_wait([this, pause](error_code) {
      if (!stopping) accept();
    });
  });
}

// Or whoever opens connections and says nothing would keep all others out.
bool Server::State::make_room() {
  if (connections.size() < settings.max_connections) return true;
  Connection* longest = nullptr;
  for (Connection* connection : connections) {
    const auto since = connection->waits_since();
    if (since && (longest == nullptr || *since < *longest->waits_since())) longest = connection;
  }
  if (longest == nullptr) return false;
  longest->shared_from_this()->end();
  return true;
}

template <typename Act>
void Server::State::for_each_connection(Act act) {
  // Acting may drop the last hold on a connection, whose destructor changes the set: walk over a copy.
  std::vector<std::shared_ptr<Connection>> all;
  for (Connection* connection : connections) all.push_back(connection->shared_from_this());
  for (const auto& connection : all) act(*connection);
}

void Server::State::stop() {
  if (!thread.joinable()) return;
  WEIR_ASSERT(thread.get_id() != std::this_thread::get_id());
  net::post(io, [this] {
    stopping = true;
    error_code ignored;
    acceptor.close(ignored);
    for_each_connection([](Connection& connection) { connection.wind_down(); });
    if (connections.empty()) return;
    stop_deadline.expires_after(std::chrono::seconds(1));
    stop_deadline.async_wait([this](error_code) { for_each_connection([](Connection& c) { c.end(); }); });
  });
  thread.join();
}

Server::Server(ServerSettings settings) : state_(std::make_shared<State>(std::move(settings))) {}
Server::~Server() { stop(); }

void Server::route(std::string method, std::string_view pattern, Handler handler) {
  WEIR_ASSERT(!state_->thread.joinable());
  state_->router.add(std::move(method), pattern, std::move(handler), nullptr);
}

void Server::stream(std::string_view pattern, StreamHandler handler) {
  WEIR_ASSERT(!state_->thread.joinable());
  state_->router.add("GET", pattern, nullptr, std::move(handler));
}

void Server::serve_metrics(std::function<std::string()> exposition) {
  route("GET", "/metrics", [exposition = std::move(exposition)](const Request&) {
    return Response{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = exposition()};
  });
}

void Server::serve_health(std::function<Result<void>()> check) {
  route("GET", "/healthz", [check = std::move(check)](const Request&) {
    const auto health = check();
    if (!health) return error_response(503, health.error().message);
    return Response{.content_type = "text/plain; charset=utf-8", .body = "ok\n"};
  });
}

Result<Address> Server::start() { return state_->start(); }
Address Server::address() const { return state_->address; }
void Server::stop() { state_->stop(); }

}  // namespace weir::http
