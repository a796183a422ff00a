#include "http/client.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace weir::http {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using boost::system::error_code;

constexpr Bytes kMaxReply = 8 * kMiB;

}  // namespace

Result<Reply> request(const Address& address, std::string_view method, std::string_view target, std::string_view body,
                      Duration timeout) {
  error_code error;
  const auto ip = net::ip::make_address(address.host == "localhost" ? "127.0.0.1" : address.host, error);
  net::io_context io{1};
  std::vector<net::ip::tcp::endpoint> endpoints;
  if (!error) {
    endpoints.emplace_back(ip, address.port);
  } else {
    net::ip::tcp::resolver resolver(io);
    for (const auto& found : resolver.resolve(address.host, std::to_string(address.port), error))
      endpoints.push_back(found);
    if (error) return fail(ErrorKind::kUnavailable, fmt::format("{}: {}", address.text(), error.message()));
  }

  bhttp::request<bhttp::string_body> message(bhttp::string_to_verb({method.data(), method.size()}),
                                             {target.data(), target.size()}, 11);
  message.set(bhttp::field::host, address.text());
  message.set(bhttp::field::user_agent, "weir");
  message.set(bhttp::field::connection, "close");
  if (!body.empty()) message.set(bhttp::field::content_type, "application/json");
  message.body() = body;
  message.prepare_payload();

  // One chain of operations; the first failure ends it. The stream's timer covers all of them.
  beast::tcp_stream stream(io);
  beast::flat_buffer buffer;
  bhttp::response_parser<bhttp::string_body> parser;
  parser.body_limit(kMaxReply);
  if (method == "HEAD") parser.skip(true);
  stream.expires_after(timeout);
  const auto keep = [&error](error_code result) { error = result; };
  const auto read = [&](error_code result, std::size_t) {
    if (result) return keep(result);
    bhttp::async_read(stream, buffer, parser, [&](error_code done, std::size_t) { keep(done); });
  };
  stream.async_connect(endpoints, [&](error_code result, const net::ip::tcp::endpoint&) {
    if (result) return keep(result);
    bhttp::async_write(stream, message, read);
  });
  io.run();

  if (error == beast::error::timeout) {
    return fail(ErrorKind::kTimeout,
                fmt::format("{} did not answer {} {} within {} ms", address.text(), method, target,
                            std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()));
  }
  if (error.category() == make_error_code(bhttp::error::bad_version).category() &&
      error != bhttp::error::end_of_stream) {
    return fail(ErrorKind::kInvalid, fmt::format("{} does not answer in HTTP: {}", address.text(), error.message()));
  }
  if (error) return fail(ErrorKind::kUnavailable, fmt::format("{}: {}", address.text(), error.message()));
  auto response = parser.release();
  return Reply{static_cast<int>(response.result_int()), std::string(response[bhttp::field::content_type]),
               std::move(response.body())};
}

std::string url_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace weir::http
