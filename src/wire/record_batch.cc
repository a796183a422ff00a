#include "wire/record_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "wire/crc32c.h"

namespace weir::wire {
namespace {

// Where the fields lie that are changed in place.
constexpr Bytes kLeaderEpochAt = 12;
constexpr Bytes kMagicAt = 16;
constexpr Bytes kCrcAt = 17;
constexpr Bytes kAttributesAt = 21;  // the CRC covers everything from here on
constexpr Bytes kMaxTimestampAt = 35;
constexpr std::int16_t kTimestampTypeBit = 0x08;

tl::unexpected<BatchError> refuse(BatchFault fault, std::string message) {
  return tl::unexpected(BatchError{fault, std::move(message)});
}

template <typename T>
void put(std::span<std::byte> batch, Bytes at, T value) {
  using Bits = std::make_unsigned_t<T>;
  auto bits = static_cast<Bits>(value);
  for (Bytes i = sizeof value; i-- > 0;) {
    batch[at + i] = static_cast<std::byte>(bits & 0xff);
    bits = static_cast<Bits>(std::uint64_t{bits} >> 8);
  }
}

BatchHeader parse(ByteView bytes) {
  Reader in(bytes.first(kBatchHeaderSize));
  BatchHeader h;
  h.base_offset = Offset(in.int64());
  h.length = in.int32();
  h.leader_epoch = in.int32();
  h.magic = in.int8();
  h.crc = in.uint32();
  h.attributes = in.int16();
  h.last_offset_delta = in.int32();
  h.base_timestamp = in.int64();
  h.max_timestamp = in.int64();
  h.producer_id = ProducerId(in.int64());
  h.producer_epoch = in.int16();
  h.base_sequence = in.int32();
  h.record_count = in.int32();
  return h;
}

/// What contradicts itself in a header whose CRC is right; empty when nothing does.
std::string_view contradiction(const BatchHeader& h) {
  if (h.base_offset.value < 0) return "a negative base offset";
  if (h.record_count < 0) return "a negative record count";
  if (h.last_offset_delta < 0) return "a negative last offset delta";
  // Compaction removes records but never adds any.
  if (h.record_count > 0 && h.record_count - 1 > h.last_offset_delta) return "more records than offsets";
  if (h.base_offset.value > std::numeric_limits<std::int64_t>::max() - h.last_offset_delta - 1)
    return "offsets that overflow";
  if (h.has_producer() && (h.producer_id.value < 0 || h.producer_epoch < 0)) return "a producer id without an epoch";
  if (h.has_producer() && h.base_sequence < 0 && !h.control()) return "a producer id without a sequence number";
  return {};
}

void set_timestamp(std::span<std::byte> batch, bool log_append_time, std::int64_t max_unix_ms) {
  const BatchHeader header = parse(batch);
  const int others = header.attributes & ~kTimestampTypeBit;
  put(batch, kAttributesAt, static_cast<std::int16_t>(log_append_time ? others | kTimestampTypeBit : others));
  put(batch, kMaxTimestampAt, max_unix_ms);
  put(batch, kCrcAt, crc32c(ByteView(batch).first(header.size()).subspan(kAttributesAt)));
}

/// Adds to a sequence number, which goes on at 0 after 2147483647.
std::int32_t add_sequence(std::int32_t sequence, std::int32_t distance) {
  return static_cast<std::int32_t>((std::int64_t{sequence} + distance) & 0x7fffffff);
}

}  // namespace

std::int32_t BatchHeader::last_sequence() const {
  return base_sequence < 0 ? -1 : add_sequence(base_sequence, last_offset_delta);
}

BatchResult<BatchHeader> read_batch_header(ByteView bytes) {
  // Old formats have shorter headers, so the magic is judged before the size.
  if (bytes.size() <= kMagicAt)
    return refuse(BatchFault::kIncomplete, fmt::format("{} bytes are no batch header", bytes.size()));
  const auto magic = std::to_integer<std::int8_t>(bytes[kMagicAt]);
  if (magic == 0 || magic == 1) {
    return refuse(BatchFault::kOldMagic, fmt::format("message format {} is too old, only format 2 is taken", magic));
  }
  if (magic != kBatchMagic) return refuse(BatchFault::kMagic, fmt::format("magic {} is no message format", magic));
  if (bytes.size() < kBatchHeaderSize)
    return refuse(BatchFault::kIncomplete, fmt::format("{} bytes are no batch header", bytes.size()));
  const BatchHeader header = parse(bytes);
  if (header.length < static_cast<std::int32_t>(kBatchHeaderSize - kBatchPrefixSize)) {
    return refuse(BatchFault::kLength, fmt::format("a batch cannot have the length {}", header.length));
  }
  return header;
}

BatchResult<BatchHeader> check_batch(ByteView bytes) {
  auto header = read_batch_header(bytes);
  if (!header) return header;
  if (bytes.size() < header->size()) {
    return refuse(BatchFault::kIncomplete,
                  fmt::format("a batch of {} bytes of which {} are here", header->size(), bytes.size()));
  }
  const std::uint32_t crc = crc32c(bytes.first(header->size()).subspan(kAttributesAt));
  if (crc != header->crc) {
    return refuse(BatchFault::kCrc, fmt::format("batch at offset {}: CRC {:08x}, but its bytes give {:08x}",
                                                header->base_offset.value, header->crc, crc));
  }
  if (header->codec() > Codec::kZstd) {
    return refuse(BatchFault::kCodec, fmt::format("codec {} does not exist", static_cast<int>(header->codec())));
  }
  if (const auto what = contradiction(*header); !what.empty()) {
    return refuse(BatchFault::kHeader, fmt::format("batch at offset {} has {}", header->base_offset.value, what));
  }
  return header;
}

BatchResult<std::vector<SharedBytes>> split_batches(const SharedBytes& records) {
  std::vector<SharedBytes> batches;
  for (Bytes at = 0; at < records.size();) {
    const auto header = check_batch(records.view().subspan(at));
    if (!header) return tl::unexpected(header.error());
    batches.push_back(records.slice(at, header->size()));
    at += header->size();
  }
  return batches;
}

void set_base_offset(std::span<std::byte> batch, Offset offset) { put(batch, 0, offset.value); }
void set_leader_epoch(std::span<std::byte> batch, std::int32_t epoch) { put(batch, kLeaderEpochAt, epoch); }

void set_log_append_time(std::span<std::byte> batch, std::int64_t unix_ms) { set_timestamp(batch, true, unix_ms); }
void set_create_time(std::span<std::byte> batch, std::int64_t max_unix_ms) { set_timestamp(batch, false, max_unix_ms); }

// ---- Reading records
// -------------------------------------------------------------------------------------------------

RecordReader::RecordReader(const BatchHeader& header, ByteBuffer plain, ByteView records)
    : header_(header), plain_(std::move(plain)), reader_(plain_.empty() ? records : ByteView(plain_)) {}

BatchResult<RecordReader> RecordReader::open(ByteView batch, Bytes max_plain) {
  const auto header = read_batch_header(batch);
  if (!header) return tl::unexpected(header.error());
  if (batch.size() < header->size()) return refuse(BatchFault::kIncomplete, "the batch is not whole");
  const ByteView records = batch.first(header->size()).subspan(kBatchHeaderSize);
  // A batch that compaction has emptied keeps its header and has nothing to decompress.
  if (header->codec() == Codec::kNone || records.empty()) return RecordReader(*header, {}, records);
  auto plain = decompress(header->codec(), records, max_plain);
  if (!plain) {
    const bool too_large = plain.error().kind == ErrorKind::kNoSpace;
    return refuse(too_large ? BatchFault::kTooLarge : BatchFault::kRecords, std::move(plain.error().message));
  }
  return RecordReader(*header, std::move(*plain), {});
}

bool RecordReader::read(Record& record) {
  const auto bytes = [this]() -> std::optional<ByteView> {
    const std::int32_t length = reader_.varint();
    if (length == -1) return std::nullopt;
    if (length < 0) return reader_.fail("a negative length"), std::nullopt;
    return reader_.view(static_cast<Bytes>(length));
  };
  const std::int32_t size = reader_.varint();
  if (reader_.ok() && (size < 0 || static_cast<Bytes>(size) > reader_.remaining()))
    reader_.fail("a record longer than its batch");
  const Bytes start = reader_.position();
  reader_.int8();  // attributes: none are defined
  const std::int64_t timestamp_delta = reader_.varlong();
  const std::int32_t offset_delta = reader_.varint();
  record.key = bytes();
  record.value = bytes();
  const std::int32_t headers = reader_.varint();
  if (headers < 0 || static_cast<Bytes>(headers) > reader_.remaining()) reader_.fail("an impossible number of headers");
  for (std::int32_t i = 0; i < headers && reader_.ok(); ++i) {
    const auto key = bytes();
    if (!key) reader_.fail("a header without a key");
    const auto value = bytes();
    if (keep_headers_ && reader_.ok()) record.headers.push_back({as_text(*key), value});
  }
  if (reader_.ok() && reader_.position() - start != static_cast<Bytes>(size))
    reader_.fail("a record whose length is wrong");
  if (reader_.ok() && (offset_delta < 0 || offset_delta > header_.last_offset_delta))
    reader_.fail("a record beyond the batch's offsets");
  if (!reader_.ok()) return false;
  record.offset = header_.base_offset + offset_delta;
  // Wraps rather than overflows: a producer may put anything here.
  record.timestamp = header_.log_append_time()
                         ? header_.max_timestamp
                         : static_cast<std::int64_t>(static_cast<std::uint64_t>(header_.base_timestamp) +
                                                     static_cast<std::uint64_t>(timestamp_delta));
  return true;
}

std::optional<Record> RecordReader::next() {
  if (!fault_.empty() || taken_ >= header_.record_count) {
    if (fault_.empty() && reader_.remaining() > 0)
      fault_ = fmt::format("{} bytes after the last record", reader_.remaining());
    return std::nullopt;
  }
  Record record;
  if (!read(record)) {
    fault_ = fmt::format("record {}: {}", taken_, reader_.result().error().message);
    return std::nullopt;
  }
  ++taken_;
  return record;
}

BatchResult<void> RecordReader::result() const {
  if (fault_.empty()) return {};
  return refuse(BatchFault::kRecords, fmt::format("batch at offset {}: {}", header_.base_offset.value, fault_));
}

BatchResult<BatchContents> check_records(ByteView batch, Bytes max_plain) {
  auto reader = RecordReader::open(batch, max_plain);
  if (!reader) return tl::unexpected(reader.error());
  const BatchHeader& header = reader->header();
  if (header.record_count != std::int64_t{header.last_offset_delta} + 1) {
    return refuse(BatchFault::kRecords, fmt::format("{} records for {} offsets", header.record_count,
                                                    std::int64_t{header.last_offset_delta} + 1));
  }
  // One record may have a header in every other byte, each of which would take twenty times as much.
  reader->keep_headers_ = false;
  reader->header_.attributes = static_cast<std::int16_t>(header.attributes & ~kTimestampTypeBit);
  BatchContents contents{.offset_of_max_timestamp = header.last_offset(), .plain_size = reader->reader_.remaining()};
  std::int64_t expected = header.base_offset.value;
  while (const auto record = reader->next()) {
    if (record->offset.value != expected++)
      return refuse(BatchFault::kRecords, fmt::format("record {} has another offset", expected - 1));
    constexpr std::int64_t kNone = -1;
    if (record->timestamp != kNone && (contents.min_timestamp == kNone || record->timestamp < contents.min_timestamp))
      contents.min_timestamp = record->timestamp;
    if (record->timestamp > contents.max_timestamp) {
      contents.max_timestamp = record->timestamp;
      contents.offset_of_max_timestamp = record->offset;
    }
    contents.has_null_key = contents.has_null_key || !record->key;
  }
  if (auto done = reader->result(); !done) return tl::unexpected(done.error());
  return contents;
}

// ---- Building
// --------------------------------------------------------------------------------------------------------

void BatchBuilder::add(std::int64_t timestamp, std::optional<ByteView> key, std::optional<ByteView> value,
                       std::span<const RecordHeader> headers) {
  if (count_ == 0) base_timestamp_ = max_timestamp_ = timestamp;
  max_timestamp_ = std::max(max_timestamp_, timestamp);

  const auto size_of = [](std::optional<ByteView> bytes) {
    return bytes ? varlong_size(static_cast<std::int64_t>(bytes->size())) + bytes->size() : varlong_size(-1);
  };
  const auto put_bytes = [this](std::optional<ByteView> bytes) {
    records_.varlong(bytes ? static_cast<std::int64_t>(bytes->size()) : -1);
    if (bytes) records_.raw(*bytes);
  };
  // Wraps as the reader does, should somebody hand in extremes.
  const auto timestamp_delta =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(timestamp) - static_cast<std::uint64_t>(base_timestamp_));
  Bytes size = 1 + varlong_size(timestamp_delta) + varlong_size(count_) + size_of(key) + size_of(value) +
               varlong_size(static_cast<std::int64_t>(headers.size()));
  for (const RecordHeader& header : headers) size += size_of(as_bytes(header.key)) + size_of(header.value);

  records_.varlong(static_cast<std::int64_t>(size));
  records_.int8(0);
  records_.varlong(timestamp_delta);
  records_.varint(count_++);
  put_bytes(key);
  put_bytes(value);
  records_.varlong(static_cast<std::int64_t>(headers.size()));
  for (const RecordHeader& header : headers) {
    put_bytes(as_bytes(header.key));
    put_bytes(header.value);
  }
}

ByteBuffer BatchBuilder::build() {
  WEIR_ASSERT(count_ > 0);
  ByteBuffer records = records_.take();
  if (options_.codec != Codec::kNone) records = compress(options_.codec, records);

  auto attributes = static_cast<std::int16_t>(options_.codec);
  if (options_.log_append_time) attributes = static_cast<std::int16_t>(attributes | kTimestampTypeBit);
  if (options_.transactional) attributes = static_cast<std::int16_t>(attributes | 0x10);
  if (options_.control) attributes = static_cast<std::int16_t>(attributes | 0x20);

  Writer out(kBatchHeaderSize + records.size());
  out.int64(options_.base_offset.value);
  out.int32(static_cast<std::int32_t>(kBatchHeaderSize - kBatchPrefixSize + records.size()));
  out.int32(options_.leader_epoch);
  out.int8(kBatchMagic);
  out.uint32(0);  // the CRC, below
  out.int16(attributes);
  out.int32(count_ - 1);
  out.int64(base_timestamp_);
  out.int64(max_timestamp_);
  out.int64(options_.producer_id.value);
  out.int16(options_.producer_epoch);
  out.int32(options_.base_sequence);
  out.int32(count_);
  out.raw(records);
  out.patch_int32(kCrcAt, static_cast<std::int32_t>(crc32c(out.view().subspan(kAttributesAt))));
  return out.take();
}

}  // namespace weir::wire
