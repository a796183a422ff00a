// Messages to bytes and back, by interpreting their tables (protocol/field_table.h).
//
// A broker reads a request and answers it so (`frame`: what follows the four bytes of length):
//
//   auto request = protocol::open_request(frame);                  // Result<RequestFrame>: header, and a Reader on the
//   body const int version = request->header.request_api_version; auto heartbeat =
//   protocol::decode<HeartbeatRequest>(request->body, version);               // Result<HeartbeatRequest>
//   HeartbeatResponse response{.error_code = ErrorCode::kUnknownMemberId};
//   Payload out = protocol::encode_response(request->header.correlation_id, response, version);  // length, header,
//   body
//
// and a client:
//
//   Payload out = protocol::encode_request(correlation_id, "my-client", request, version);
//   auto reply = protocol::open_response(frame, ApiKey::kHeartbeat, version);     // correlation id, and a Reader on
//   the body auto response = protocol::decode<HeartbeatResponse>(reply->body, version);
//
// Decoding never allocates by a length it has not seen the bytes of; unknown tagged fields are skipped. Encoding cannot
// fail: a field that `version` does not have is left out, null where null is not allowed is written as empty.
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "protocol/api_key.h"
#include "protocol/field_table.h"
#include "protocol/messages/header.h"
#include "weir/types.h"
#include "wire/reader.h"

namespace weir::protocol {

// ---- The interpreters: `message` is the struct that `table` describes --------------------------------------------

/// Fills `message`, which must hold its defaults. kUnsupported for a version outside the table, else kInvalid.
Result<void> decode(const Table& table, void* message, int version, wire::Reader& reader);
/// The same with a bound of its own: the elements of all arrays, each as large as its struct, may take `budget` bytes,
/// which is reduced by what they take.
Result<void> decode(const Table& table, void* message, int version, wire::Reader& reader, Bytes& budget);
/// Bytes that encode() will write.
Bytes encoded_size(const Table& table, const void* message, int version);
/// Appends the message; `version` is one the table has (asserted: answer a version you do not know in one you do).
/// Records stay as they are: pieces of memory or ranges of files.
void encode(const Table& table, const void* message, int version, Payload& out);
/// Whether all fields are equal, of all versions. Records are compared by their bytes in memory; file ranges are
/// unequal.
bool equal(const Table& table, const void* a, const void* b);
/// One line for people: `HeartbeatRequest{group_id="g", generation_id=3}`, fields of `version` only.
std::string print(const Table& table, const void* message, int version);

// ---- The same, typed -----------------------------------------------------------------------------------------------

/// Reads one message; bytes after it are left in the reader.
template <typename M>
Result<M> decode(wire::Reader& reader, int version) {
  Result<M> message{M{}};
  if (auto done = decode(M::table(), &*message, version, reader); !done) return tl::unexpected(done.error());
  return message;
}
/// As above, from a buffer; records become slices of it.
template <typename M>
Result<M> decode(SharedBytes bytes, int version) {
  wire::Reader reader(std::move(bytes));
  return decode<M>(reader, version);
}
template <typename M>
Result<M> decode(ByteView bytes, int version) {
  wire::Reader reader(bytes);
  return decode<M>(reader, version);
}
template <typename M>
Bytes encoded_size(const M& message, int version) {
  return encoded_size(M::table(), &message, version);
}
template <typename M>
Payload encode(const M& message, int version) {
  Payload out;
  encode(M::table(), &message, version, out);
  return out;
}
template <typename M>
bool equal(const M& a, const M& b) {
  return equal(M::table(), &a, &b);
}
template <typename M>
std::string print(const M& message, int version) {
  return print(M::table(), &message, version);
}

// ---- On disk and inside other messages: an int16 stands in front ---------------------------------------------------

ByteBuffer encode_prefixed(const Table& table, const void* message, std::int16_t prefix, int version);

/// Values of __consumer_offsets, producer snapshots, subscriptions, assignments: the prefix is the version.
template <typename M>
ByteBuffer encode_versioned(const M& message, std::int16_t version) {
  return encode_prefixed(M::table(), &message, version, version);
}
/// kUnsupported for a version we do not know; with `newest_for_newer` such bytes are read as the newest version we
/// know, which is the rule for subscriptions and assignments.
template <typename M>
Result<M> decode_versioned(ByteView bytes, bool newest_for_newer = false) {
  wire::Reader reader(bytes);
  int version = reader.int16();
  if (newest_for_newer && version > M::table().versions.last) version = M::table().versions.last;
  return decode<M>(reader, version);
}

/// Keys of __consumer_offsets: the prefix is the type of the record.
template <typename Key>
ByteBuffer encode_key(const Key& key) {
  return encode_prefixed(Key::table(), &key, Key::kRecordType, 0);
}
/// The type of a record of __consumer_offsets by its key; -1 when the key is shorter than that.
std::int16_t record_type(ByteView key);
template <typename Key>
Result<Key> decode_key(ByteView bytes) {
  wire::Reader reader(bytes);
  reader.skip(sizeof(std::int16_t));
  return decode<Key>(reader, 0);
}

// ---- Frames --------------------------------------------------------------------------------------------------------

struct RequestFrame {
  RequestHeader header;
  wire::Reader body;
};
struct ResponseFrame {
  std::int32_t correlation_id = 0;
  wire::Reader body;
};

/// Reads the header of a request. kUnsupported, naming it, for an API we have no table of: Kafka closes the connection.
/// The version is not judged here, so that an ApiVersions request from the future can be answered.
Result<RequestFrame> open_request(SharedBytes frame);
/// Reads the header of the response to a request of `key` and `version`.
Result<ResponseFrame> open_response(SharedBytes frame, ApiKey key, int version);

/// Length, header and message: what the two below are made of.
Payload encode_frame(const Table& header_table, const void* header, int header_version, const Table& table,
                     const void* message, int version);
Payload encode_request(const Table& table, const void* message, ApiKey key, int version, std::int32_t correlation_id,
                       std::string_view client_id);
Payload encode_response(const Table& table, const void* message, ApiKey key, int version, std::int32_t correlation_id);

/// A whole frame, its length first.
template <typename M>
Payload encode_request(std::int32_t correlation_id, std::string_view client_id, const M& message, int version) {
  return encode_request(M::table(), &message, M::kApiKey, version, correlation_id, client_id);
}
template <typename M>
Payload encode_response(std::int32_t correlation_id, const M& message, int version) {
  return encode_response(M::table(), &message, M::kApiKey, version, correlation_id);
}

}  // namespace weir::protocol
