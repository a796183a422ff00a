#include "broker/batch_check.h"

#include <fmt/format.h>

#include "protocol/messages/0_produce.h"

namespace weir::broker {
namespace {

using protocol::ErrorCode;
using wire::BatchFault;

/// zstd came with Produce 7.
constexpr int kFirstZstdVersion = 7;

CheckedRecords refused(ErrorCode error, std::string message) { return {error, std::move(message), {}, {}}; }

}  // namespace

ErrorCode to_error(BatchFault fault) {
  switch (fault) {
    case BatchFault::kOldMagic:
    case BatchFault::kHeader:
    case BatchFault::kRecords: return ErrorCode::kInvalidRecord;
    case BatchFault::kCodec: return ErrorCode::kUnsupportedCompressionType;
    case BatchFault::kTooLarge: return ErrorCode::kMessageTooLarge;
    default: return ErrorCode::kCorruptMessage;
  }
}

CheckedRecords check_records_field(const std::optional<SharedBytes>& records, int version) {
  if (!records || records->empty()) {
    return refused(
        ErrorCode::kInvalidRecord,
        fmt::format("Produce requests with version {} must have exactly one record batch per partition", version));
  }
  const ByteView bytes = records->view();
  const auto header = wire::check_batch(bytes);
  if (!header) return refused(to_error(header.error().fault), header.error().message);
  if (header->size() != bytes.size()) {
    return refused(
        ErrorCode::kInvalidRecord,
        fmt::format("Produce requests with version {} are only allowed to contain exactly one record batch per "
                    "partition",
                    version));
  }
  if (header->codec() == wire::Codec::kZstd && version < kFirstZstdVersion) {
    return refused(
        ErrorCode::kUnsupportedCompressionType,
        fmt::format("Produce requests with version {} are not allowed to use ZStandard compression", version));
  }
  if (header->control()) return refused(ErrorCode::kInvalidRecord, "Clients are not allowed to write control records");
  // Of compressed batches nothing else says how many offsets they take.
  if (header->record_count <= 0 || header->record_count - 1 != header->last_offset_delta) {
    return refused(ErrorCode::kInvalidRecord,
                   fmt::format("The batch says that it holds {} records and that its last offset delta is {}",
                               header->record_count, header->last_offset_delta));
  }
  if (header->base_offset != Offset(0)) {
    return refused(
        ErrorCode::kInvalidRecord,
        fmt::format("The base offset of a batch that is produced must be 0, but it is {}", header->base_offset.value));
  }
  CheckedRecords checked{.header = *header};
  if (header->codec() == wire::Codec::kNone) {
    const auto contents = wire::check_records(bytes, bytes.size());
    if (!contents) return refused(to_error(contents.error().fault), contents.error().message);
    checked.contents = *contents;
  }
  return checked;
}

std::shared_ptr<const void> check_produce(const void* message, int version) {
  const auto& request = *static_cast<const protocol::ProduceRequest*>(message);
  auto checked = std::make_shared<CheckedProduce>();
  for (const auto& topic : request.topic_data) {
    auto& partitions = checked->topics.emplace_back();
    for (const auto& partition : topic.partition_data)
      partitions.push_back(check_records_field(partition.records, version));
  }
  return checked;
}

}  // namespace weir::broker
