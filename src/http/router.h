// Which handler answers which path: pure, no sockets.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"
#include "weir/types.h"

namespace weir::http {

/// Decodes %XX (and, in a query, '+'). kInvalid for a half-written or zero-byte escape.
Result<std::string> url_decode(std::string_view text, bool plus_is_blank);

/// Filled before the server starts, then read by its thread only.
class Router {
 public:
  struct Route {
    std::string method;
    std::vector<std::string> parts;  ///< Literals, "{name}" or, last, "{name...}".
    Handler handler;                 ///< One of the two is set.
    StreamHandler stream;
  };
  struct Match {
    const Route* route = nullptr;
    Request request;        ///< Path, params and query filled in.
    int status = 200;       ///< 400, 404 or 405 when there is no route.
    std::string allow;      ///< For 405: the methods that would do.
    std::string complaint;  ///< What is wrong, for people.
  };

  void add(std::string method, std::string_view pattern, Handler handler, StreamHandler stream);
  /// `target` as it stands in the request line, still encoded.
  Match find(std::string_view method, std::string_view target) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace weir::http
