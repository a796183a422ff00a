// Record batches of Kafka's message format 2: what is stored on disk, produced and fetched, byte for byte.
//
//   offset 0  int64  base offset              23  int32  last offset delta       57  int32  record count
//          8  int32  length (of what follows) 27  int64  base timestamp, ms      61         records, perhaps compressed
//         12  int32  partition leader epoch   35  int64  max timestamp, ms
//         16  int8   magic = 2                43  int64  producer id
//         17  uint32 CRC-32C of 21..end       51  int16  producer epoch
//         21  int16  attributes               53  int32  base sequence
//
// Attributes: bits 0-2 codec, 3 timestamp type (1: LogAppendTime), 4 transactional, 5 control, 6 delete horizon set.
// Base offset and leader epoch may be changed without touching the CRC. All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "weir/types.h"
#include "wire/compression.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace weir::wire {

inline constexpr Bytes kBatchHeaderSize = 61;
/// Base offset and length: what stands before the bytes that the length counts.
inline constexpr Bytes kBatchPrefixSize = 12;
inline constexpr std::int8_t kBatchMagic = 2;

/// The header of a batch, as found. Trust it only after check_batch().
struct BatchHeader {
  Offset base_offset;
  std::int32_t length = 0;
  std::int32_t leader_epoch = -1;
  std::int8_t magic = kBatchMagic;
  std::uint32_t crc = 0;
  std::int16_t attributes = 0;
  std::int32_t last_offset_delta = 0;
  std::int64_t base_timestamp = -1;
  std::int64_t max_timestamp = -1;
  ProducerId producer_id = kNoProducerId;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
  std::int32_t record_count = 0;

  Bytes size() const { return kBatchPrefixSize + static_cast<Bytes>(length); }
  Offset last_offset() const { return base_offset + last_offset_delta; }
  Offset next_offset() const { return base_offset + (std::int64_t{last_offset_delta} + 1); }
  /// Wraps from 2147483647 to 0, as sequence numbers do; -1 without a producer.
  std::int32_t last_sequence() const;
  Codec codec() const { return static_cast<Codec>(attributes & 0x07); }
  bool log_append_time() const { return (attributes & 0x08) != 0; }
  bool transactional() const { return (attributes & 0x10) != 0; }
  bool control() const { return (attributes & 0x20) != 0; }
  bool has_producer() const { return producer_id != kNoProducerId; }
};

/// Why bytes are not a batch we take. Apache Kafka 4.3.1 answers kMagic, kLength and kCrc with CORRUPT_MESSAGE, all
/// else with INVALID_RECORD (measured); for kCodec it has UNKNOWN_SERVER_ERROR, where UNSUPPORTED_COMPRESSION_TYPE says
/// more. It also answers a Produce of no batch, of several, or of a control batch with INVALID_RECORD.
enum class BatchFault {
  kIncomplete,  ///< The bytes end before the header or the batch does: a torn tail, or a reader that must fetch more.
  kOldMagic,    ///< Message format 0 or 1.
  kMagic,       ///< No format of Kafka's at all.
  kLength,      ///< A length that cannot be: shorter than a header, or negative.
  kCrc,
  kCodec,     ///< Codec bits 5 to 7.
  kHeader,    ///< Counts, deltas, sequence numbers or timestamps that contradict each other.
  kRecords,   ///< The records contradict the header or themselves.
  kTooLarge,  ///< More than allowed comes out of the decompressor.
};
struct BatchError {
  BatchFault fault = BatchFault::kHeader;
  std::string message;
};
template <typename T>
using BatchResult = tl::expected<T, BatchError>;

/// Reads the header at the start of `bytes`, which may end before the batch does (but holds kBatchHeaderSize bytes).
/// Checks magic and length only. For walking a log segment.
BatchResult<BatchHeader> read_batch_header(ByteView bytes);

/// Checks the batch at the start of `bytes` as a log must before it trusts it: whole, magic, length, CRC, and a header
/// that makes sense. What follows the batch is not looked at.
BatchResult<BatchHeader> check_batch(ByteView bytes);

/// Cuts a `records` field into its batches, each checked by check_batch(). Nothing may be left over.
BatchResult<std::vector<SharedBytes>> split_batches(const SharedBytes& records);

// ---- In place, on a whole batch that passed check_batch() ----------------------------------------------------------

void set_base_offset(std::span<std::byte> batch, Offset offset);
void set_leader_epoch(std::span<std::byte> batch, std::int32_t epoch);
/// Sets the timestamp type and the max timestamp, which lie inside the CRC, and the CRC.
void set_log_append_time(std::span<std::byte> batch, std::int64_t unix_ms);
/// The same for records that keep their own timestamps, of which `max_unix_ms` is the largest.
void set_create_time(std::span<std::byte> batch, std::int64_t max_unix_ms);

// ---- Records -------------------------------------------------------------------------------------------------------

struct RecordHeader {
  std::string_view key;
  std::optional<ByteView> value;
};

/// One record; its views live as long as the RecordReader and the batch.
struct Record {
  Offset offset;
  std::int64_t timestamp = -1;  ///< Unix ms: of the record, or of the batch when that has LogAppendTime.
  std::optional<ByteView> key;  ///< Null and empty differ.
  std::optional<ByteView> value;
  std::vector<RecordHeader> headers;
};

/// Walks the records of one batch. Owned by one thread; does not look at the CRC.
class RecordReader {
 public:
  /// `batch` is whole. `max_plain` bounds what a compressed batch may become.
  static BatchResult<RecordReader> open(ByteView batch, Bytes max_plain);

  // Views point into the reader's own buffer, so it moves but is not copied.
  RecordReader(RecordReader&&) = default;
  RecordReader& operator=(RecordReader&&) = default;

  /// The next record, or nothing at the end and after a fault.
  std::optional<Record> next();
  /// The first fault, once next() returned nothing: all records were there, nothing was left over.
  BatchResult<void> result() const;
  const BatchHeader& header() const { return header_; }

 private:
  friend BatchResult<struct BatchContents> check_records(ByteView batch, Bytes max_plain);
  RecordReader(const BatchHeader& header, ByteBuffer plain, ByteView records);
  bool read(Record& record);

  BatchHeader header_;
  ByteBuffer plain_;  // what a compressed batch became; moving a vector keeps the views into it
  Reader reader_;
  std::int32_t taken_ = 0;
  bool keep_headers_ = true;
  std::string fault_;
};

/// What a walk over all records found.
struct BatchContents {
  /// Of the records' own timestamps, whatever type the header names; -1 when no record has one.
  std::int64_t min_timestamp = -1;
  std::int64_t max_timestamp = -1;
  Offset offset_of_max_timestamp;
  bool has_null_key = false;  ///< A compacted topic must refuse it.
  Bytes plain_size = 0;       ///< Of the records, once decompressed.
};
/// Walks every record: lengths, consecutive offset deltas, the count of the header. For uncompressed batches, and for
/// compressed ones on compacted topics. Holds nothing but what comes out of the decompressor.
BatchResult<BatchContents> check_records(ByteView batch, Bytes max_plain);

/// What a batch says of itself, for BatchBuilder.
struct BatchOptions {
  Offset base_offset{0};
  std::int32_t leader_epoch = -1;
  Codec codec = Codec::kNone;
  bool log_append_time = false;
  bool transactional = false;
  bool control = false;
  ProducerId producer_id = kNoProducerId;
  std::int16_t producer_epoch = -1;
  std::int32_t base_sequence = -1;
};

/// Makes a batch of records with consecutive offsets. Owned by one thread.
class BatchBuilder {
 public:
  explicit BatchBuilder(BatchOptions options = {}) : options_(options) {}

  /// `timestamp`: Unix ms. The bytes are copied.
  void add(std::int64_t timestamp, std::optional<ByteView> key, std::optional<ByteView> value,
           std::span<const RecordHeader> headers = {});
  std::int32_t count() const { return count_; }
  /// Size of the batch so far, before compression.
  Bytes size() const { return kBatchHeaderSize + records_.size(); }
  /// The batch, with its CRC. At least one record; the builder is spent.
  ByteBuffer build();

 private:
  BatchOptions options_;
  Writer records_;
  std::int32_t count_ = 0;
  std::int64_t base_timestamp_ = -1;
  std::int64_t max_timestamp_ = -1;
};

}  // namespace weir::wire
