// What stands around a message on a connection: the length, and the headers with their own rule of versions.
#include <fmt/format.h>

#include "protocol/api_tables.h"
#include "protocol/codec.h"

namespace weir::protocol {
namespace {

int request_header_version(const Table& request, int version) { return request.flexible(version) ? 2 : 1; }

/// A client learns from ApiVersions which versions it may use, so it must be able to read that response in any version.
int response_header_version(ApiKey key, const Table& response, int version) {
  return key != ApiKey::kApiVersions && response.flexible(version) ? 1 : 0;
}

}  // namespace

Result<RequestFrame> open_request(SharedBytes bytes) {
  wire::Reader reader(bytes);
  const std::int16_t key = reader.int16();
  const std::int16_t version = reader.int16();
  if (auto read = reader.result(); !read) return fail(ErrorKind::kInvalid, "a request without a header");
  const ApiTables* api = find_api(key);
  if (api == nullptr) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("API {} ({}) version {} is not served", key, name(static_cast<ApiKey>(key)), version));
  }
  RequestFrame frame{{}, wire::Reader(std::move(bytes))};
  const Table& table = RequestHeader::table();
  auto done = decode(table, &frame.header, request_header_version(api->request(), version), frame.body);
  if (!done) return tl::unexpected(done.error());
  return frame;
}

Result<ResponseFrame> open_response(SharedBytes bytes, ApiKey key, int version) {
  const ApiTables* api = find_api(static_cast<std::int16_t>(key));
  if (api == nullptr) return fail(ErrorKind::kUnsupported, fmt::format("no table for API {}", name(key)));
  ResponseFrame frame{0, wire::Reader(std::move(bytes))};
  ResponseHeader header;
  auto done =
      decode(ResponseHeader::table(), &header, response_header_version(key, api->response(), version), frame.body);
  if (!done) return tl::unexpected(done.error());
  frame.correlation_id = header.correlation_id;
  return frame;
}

Payload encode_request(const Table& table, const void* message, ApiKey key, int version, std::int32_t correlation_id,
                       std::string_view client_id) {
  RequestHeader header{.request_api_key = static_cast<std::int16_t>(key),
                       .request_api_version = static_cast<std::int16_t>(version),
                       .correlation_id = correlation_id,
                       .client_id = std::string(client_id)};
  return encode_frame(RequestHeader::table(), &header, request_header_version(table, version), table, message, version);
}

Payload encode_response(const Table& table, const void* message, ApiKey key, int version, std::int32_t correlation_id) {
  ResponseHeader header{.correlation_id = correlation_id};
  return encode_frame(ResponseHeader::table(), &header, response_header_version(key, table, version), table, message,
                      version);
}

}  // namespace weir::protocol
