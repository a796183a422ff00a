// The one wall around the HTTP server: routes, streams that do not hold a thread, /metrics, /healthz.
//
// Everything a part of weir shows over HTTP goes through this class; only server.cc knows which library serves it.
// Plain HTTP/1.1, keep-alive, no TLS: it listens on 127.0.0.1 unless told otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/address.h"
#include "weir/types.h"

namespace weir::http {

/// A request as a handler sees it: already read in full, its size checked, its path and query percent-decoded.
struct Request {
  std::string method;                         ///< "GET", "POST", ... in upper case.
  std::string path;                           ///< Decoded, without the query.
  std::map<std::string, std::string> params;  ///< What the `{name}` parts of the route matched.
  std::map<std::string, std::string> query;   ///< Decoded; the last of a repeated name wins.
  std::string body;

  /// A route parameter, or "" when the route has none of that name.
  const std::string& param(const std::string& name) const;
};

/// What is sent back. The default is an empty 200 with a JSON content type.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< In addition to the usual ones.
};

/// `{"error":"..."}` with the status: the one shape every failure has.
Response error_response(int status, std::string_view message);

/// Called on the server's thread. It must not wait for anything: copy a snapshot, answer, return. An exception becomes
/// a 500.
using Handler = std::function<Response(const Request&)>;

/// The server's end of one open stream of server-sent events. Every function may be called from any thread.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Sends one event. False when the reader is gone or so far behind that the stream was cut off (256 KiB unread).
  virtual bool send(std::string_view event, std::string_view data) = 0;
  virtual bool closed() const = 0;
  virtual void close() = 0;
};

/// Called on the server's thread when a stream opens. The stream lives as long as somebody holds it or its reader
/// stays.
using StreamHandler = std::function<void(const Request&, std::shared_ptr<Stream>)>;

struct ServerSettings {
  std::string host = "127.0.0.1";  ///< An IP address, or "localhost".
  std::uint16_t port = 0;          ///< 0 takes any free port.
  /// Names pages may ask it by, besides an IP address, localhost and the machine's own name: see Server.
  std::vector<std::string> names = {};
  bool next_free_port = false;  ///< When the port is taken, try the next ones (20 at most) instead of failing.
  Bytes max_head = 16 * kKiB;   ///< Request line and headers; beyond it 431.
  Bytes max_body = kMiB;        ///< Beyond it 413.
  /// Beyond it the one goes that has waited longest: idle, in the middle of a request, or a stream.
  std::size_t max_connections = 256;
  Duration read_timeout = std::chrono::seconds(10);   ///< For one whole request to arrive once it has begun.
  Duration idle_timeout = std::chrono::seconds(60);   ///< Between two requests of one connection.
  Duration write_timeout = std::chrono::seconds(10);  ///< For a peer that does not take its answer.
};

/// Where a server listens, or what a client asks.
using runtime::Address;

/// A browser's reader is no way in. A page of another site may not change anything (`Origin`, `Sec-Fetch-Site`: 403),
/// nor may one whose site has pointed its own name at this machine (`Host`): a request of a page that changes something
/// is asked by an IP address or a name that is known here, and on loopback so is every request.
///
/// Owns one thread, on which all handlers run one at a time. Routes are added before start(); the other functions may
/// be called from any thread except the server's own.
class Server {
 public:
  explicit Server(ServerSettings settings);
  ~Server();  ///< Stops.
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// `pattern` is a path whose parts may be parameters: "/api/check/{group}". The last part may be "{name...}", which
  /// takes the rest of the path. A literal part wins over a parameter. GET routes answer HEAD too.
  void route(std::string method, std::string_view pattern, Handler handler);
  /// A GET route that answers with server-sent events.
  void stream(std::string_view pattern, StreamHandler handler);
  /// `/metrics` in the Prometheus text format; `exposition` runs on the server's thread.
  void serve_metrics(std::function<std::string()> exposition);
  /// `/healthz`: 200 "ok", or 503 with the message when `check` says what is wrong.
  void serve_health(std::function<Result<void>()> check);

  /// Binds, listens and starts the thread. The error names the address and, for a taken port, the way out.
  Result<Address> start();
  /// Where it listens; valid after start().
  Address address() const;
  /// Accepts nothing more, ends the streams, lets answers that are being written finish (one second at most).
  /// Idempotent.
  void stop();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::http
