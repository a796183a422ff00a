// The .snapshot files beside the segments: the producers known at their base offset. Use encode_versioned().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/field_table.h"

namespace weir::protocol {

struct ProducerSnapshot {
  struct ProducerEntry {
    std::int64_t producer_id = 0;
    std::int16_t epoch = 0;
    std::int32_t last_sequence = 0;
    std::int64_t last_offset = 0;
    std::int32_t offset_delta = 0;
    std::int64_t timestamp = 0;
    std::int32_t coordinator_epoch = 0;
    std::int64_t current_txn_first_offset = 0;

    WEIR_STRUCT(ProducerEntry,
                WEIR_FIELD(producer_id, between(1, 1)),
                WEIR_FIELD(epoch, between(1, 1)),
                WEIR_FIELD(last_sequence, between(1, 1)),
                WEIR_FIELD(last_offset, between(1, 1)),
                WEIR_FIELD(offset_delta, between(1, 1)),
                WEIR_FIELD(timestamp, between(1, 1)),
                WEIR_FIELD(coordinator_epoch, between(1, 1)),
                WEIR_FIELD(current_txn_first_offset, between(1, 1)))
  };

  std::uint32_t crc = 0;
  std::vector<ProducerEntry> producer_entries;

  WEIR_MESSAGE(ProducerSnapshot,
               valid(1, 1),
               WEIR_FIELD(crc, between(1, 1)),
               WEIR_FIELD(producer_entries, between(1, 1)))
};

}  // namespace weir::protocol
