// What a partition remembers of its idempotent producers: the last five batches of each (KIP-98), so that a batch sent
// again is recognised. Written to disk in Kafka's ProducerSnapshot format.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/bytes.h"
#include "weir/types.h"
#include "wire/record_batch.h"

namespace weir::storage {

enum class SequenceCheck {
  kOk,
  kDuplicate,    ///< One of the last five batches; it was stored already.
  kOutOfOrder,   ///< A gap, or older than the last five: OUT_OF_ORDER_SEQUENCE_NUMBER.
  kFencedEpoch,  ///< The epoch of an earlier incarnation: INVALID_PRODUCER_EPOCH.
};

/// The state of one partition. Owned by the loop that owns the log.
class ProducerState {
 public:
  struct Verdict {
    SequenceCheck check = SequenceCheck::kOk;
    /// Of the original, when it is a duplicate.
    Offset base_offset = kNoOffset;
    Offset last_offset = kNoOffset;
    std::int64_t timestamp = -1;
  };

  /// Kafka's rules: a producer that is not known may begin anywhere (its state may have expired); a new epoch begins at
  /// 0. A batch without producer is always kOk.
  Verdict check(const wire::BatchHeader& batch) const;
  /// Remembers a batch with the offsets it is stored under; it was checked, or is replayed from the log.
  void update(const wire::BatchHeader& batch);
  /// Forgets producers whose last batch is older than `before` (Unix ms).
  void expire(std::int64_t before);
  std::size_t size() const { return producers_.size(); }

  /// Kafka's .snapshot file. Kafka keeps one entry per producer; we write one per remembered batch, oldest first, so
  /// that Kafka's reader ends up with the last one and ours with all five.
  ByteBuffer encode() const;
  static Result<ProducerState> decode(ByteView bytes);

 private:
  static constexpr std::size_t kRemembered = 5;
  struct Batch {
    std::int32_t last_sequence = -1;
    std::int32_t offset_delta = 0;  // last offset - base offset, and last sequence - first
    Offset last_offset = kNoOffset;
    std::int64_t timestamp = -1;
  };
  struct Producer {
    std::int16_t epoch = -1;
    std::uint8_t count = 0;
    std::array<Batch, kRemembered> batches;  // oldest first
    const Batch& last() const { return batches[count - 1]; }
  };
  void remember(ProducerId id, std::int16_t epoch, const Batch& batch);

  std::unordered_map<ProducerId, Producer> producers_;
};

}  // namespace weir::storage
