// What can be said of produced records without looking at the broker's state: done on the io loops.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "protocol/error_code.h"
#include "wire/record_batch.h"

namespace weir::broker {

/// The records of one partition of a Produce request: one whole batch with a good CRC and, when it is not compressed,
/// good records; or why not.
struct CheckedRecords {
  protocol::ErrorCode error = protocol::ErrorCode::kNone;
  std::string message;
  wire::BatchHeader header;
  std::optional<wire::BatchContents> contents;  ///< Of an uncompressed batch.
};

/// The whole request: by topic, then by partition, in the order of the request.
struct CheckedProduce {
  std::vector<std::vector<CheckedRecords>> topics;
};

CheckedRecords check_records_field(const std::optional<SharedBytes>& records, int produce_version);
/// For the api table: `message` is a ProduceRequest, the result a CheckedProduce.
std::shared_ptr<const void> check_produce(const void* message, int version);

/// The error Kafka answers for a fault of a batch.
protocol::ErrorCode to_error(wire::BatchFault fault);

}  // namespace weir::broker
