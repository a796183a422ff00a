#include "decode.h"

#include <memory>
#include <random>
#include <vector>

#include "base/assert.h"
#include "protocol/api_tables.h"
#include "protocol/codec.h"
#include "protocol/random.h"
#include "wire/record_batch.h"

namespace weir::fuzz {
namespace {

constexpr Bytes kMaxPlain = kMiB;

const std::vector<const protocol::Table*>& tables() {
  static const std::vector<const protocol::Table*> all = [] {
    std::vector<const protocol::Table*> list(protocol::other_tables().begin(), protocol::other_tables().end());
    for (const protocol::ApiTables& api : protocol::api_tables()) {
      list.push_back(&api.request());
      list.push_back(&api.response());
    }
    return list;
  }();
  return all;
}

/// Kinds of input after those that are messages.
enum class Kind : std::uint8_t { kFrame, kBatch, kRecordsField, kCompressed, kCount };

using Message = std::unique_ptr<void, void (*)(void*)>;
Message create(const protocol::Table& table) { return {table.ops->create(), table.ops->destroy}; }

ByteBuffer encode(const protocol::Table& table, const void* message, int version) {
  Payload out;
  protocol::encode(table, message, version, out);
  return out.flatten().value();
}

void decode_message(const protocol::Table& table, int version, ByteView bytes) {
  const Message message = create(table);
  wire::Reader reader{SharedBytes(to_buffer(bytes))};
  if (!protocol::decode(table, message.get(), version, reader)) return;
  WEIR_ASSERT(!protocol::print(table, message.get(), version).empty());

  const ByteBuffer again = encode(table, message.get(), version);
  WEIR_ASSERT(again.size() == protocol::encoded_size(table, message.get(), version));
  const Message second = create(table);
  wire::Reader second_reader{SharedBytes(again)};
  WEIR_ASSERT(protocol::decode(table, second.get(), version, second_reader).has_value());
  WEIR_ASSERT(protocol::equal(table, message.get(), second.get()));
}

void decode_batch(ByteView bytes) {
  const auto header = wire::check_batch(bytes);
  WEIR_ASSERT(!header || header->size() <= bytes.size());
  const bool consistent = wire::check_records(bytes, kMaxPlain).has_value();
  auto reader = wire::RecordReader::open(bytes, kMaxPlain);
  WEIR_ASSERT(reader || !consistent);
  if (!reader) return;
  std::int64_t count = 0;
  while (reader->next()) ++count;
  WEIR_ASSERT(reader->result() || !consistent);
  WEIR_ASSERT(!reader->result() || count == std::max(reader->header().record_count, 0));
}

void decode_frame(ByteView bytes) {
  auto frame = protocol::open_request(SharedBytes(to_buffer(bytes)));
  if (!frame) return;
  const auto& table = protocol::find_api(frame->header.request_api_key)->request();
  const Message message = create(table);
  (void)protocol::decode(table, message.get(), frame->header.request_api_version, frame->body);
}

ByteBuffer some_batch(std::mt19937_64& random) {
  wire::BatchBuilder builder({.base_offset = Offset(static_cast<std::int64_t>(random() >> 1)),
                              .codec = static_cast<wire::Codec>(random() % 5),
                              .producer_id = ProducerId(static_cast<std::int64_t>(random() >> 1)),
                              .producer_epoch = 1,
                              .base_sequence = 5});
  for (std::uint64_t n = 1 + random() % 5; n > 0; --n) {
    const std::string text(random() % 40, static_cast<char>('a' + random() % 26));
    const wire::RecordHeader header{text, as_bytes(text)};
    builder.add(static_cast<std::int64_t>(random()), random() % 3 == 0 ? std::nullopt : std::optional(as_bytes(text)),
                as_bytes(text), std::span(&header, random() % 2));
  }
  return builder.build();
}

}  // namespace

void decode_anything(ByteView input) {
  if (input.size() < 2) return;
  const std::size_t count = tables().size();
  const auto what = std::to_integer<std::size_t>(input[0]) % (count + static_cast<std::size_t>(Kind::kCount));
  const auto detail = std::to_integer<int>(input[1]);
  const ByteView rest = input.subspan(2);
  if (what < count) return decode_message(*tables()[what], detail, rest);
  switch (static_cast<Kind>(what - count)) {
    case Kind::kFrame: return decode_frame(rest);
    case Kind::kBatch: return decode_batch(rest);
    case Kind::kRecordsField: return (void)wire::split_batches(SharedBytes(to_buffer(rest)));
    case Kind::kCompressed: {
      const auto plain = wire::decompress(static_cast<wire::Codec>(detail % 6), rest, kMaxPlain);
      WEIR_ASSERT(!plain || plain->size() <= kMaxPlain);
      return;
    }
    case Kind::kCount: return;
  }
}

ByteBuffer valid_input(std::uint64_t choice) {
  std::mt19937_64 random(choice);
  const std::size_t count = tables().size();
  // Half messages, half the rest, of which there are fewer kinds.
  const std::size_t what =
      random() % 2 == 0 ? random() % count : count + random() % static_cast<std::size_t>(Kind::kCount);
  ByteBuffer out = {static_cast<std::byte>(what), std::byte{0}};
  const auto append = [&out](const ByteBuffer& bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };

  if (what < count) {
    const protocol::Table& table = *tables()[what];
    const int versions = table.versions.last - table.versions.first + 1;
    const int version = table.versions.first + static_cast<int>(random() % static_cast<std::uint64_t>(versions));
    out[1] = static_cast<std::byte>(version);
    const Message message = create(table);
    protocol::randomize(table, message.get(), version, random);
    append(encode(table, message.get(), version));
    return out;
  }
  switch (static_cast<Kind>(what - count)) {
    case Kind::kFrame: {
      const auto apis = protocol::api_tables();
      const protocol::ApiTables& api = apis[random() % apis.size()];
      const int version = api.request().versions.last;
      const Message message = create(api.request());
      protocol::randomize(api.request(), message.get(), version, random);
      const Payload frame = protocol::encode_request(api.request(), message.get(), api.key, version, 1, "fuzz");
      const ByteBuffer bytes = frame.flatten().value();
      out.insert(out.end(), bytes.begin() + 4, bytes.end());
      return out;
    }
    case Kind::kBatch: append(some_batch(random)); return out;
    case Kind::kRecordsField:
      append(some_batch(random));
      append(some_batch(random));
      return out;
    case Kind::kCompressed: {
      const auto codec = static_cast<wire::Codec>(random() % 5);
      out[1] = static_cast<std::byte>(codec);
      ByteBuffer plain(random() % 3000);
      for (std::byte& b : plain) b = static_cast<std::byte>('a' + random() % 4);
      append(wire::compress(codec, plain));
      return out;
    }
    case Kind::kCount: break;
  }
  return out;
}

}  // namespace weir::fuzz
