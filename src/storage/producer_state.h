// What a partition remembers of its idempotent producers: the last five batches of each (KIP-98), so that a batch sent
// again is recognised. Written to disk in Kafka's ProducerSnapshot format.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/bytes.h"
#include "weir/types.h"

namespace weir::storage {

/// The fields of a batch that sequence checks need.
struct ProducerBatch {
  ProducerId producer = kNoProducerId;
  std::int16_t epoch = -1;
  std::int32_t first_sequence = -1;
  std::int32_t last_sequence = -1;
};

/// The last sequence of a batch, which wraps from 2^31-1 to 0.
std::int32_t last_sequence_of(std::int32_t first_sequence, std::int32_t last_offset_delta);

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
  /// 0.
  Verdict check(const ProducerBatch& batch) const;
  /// Remembers a stored batch; it was checked, or is replayed from the log. `timestamp`: its maxTimestamp.
  void update(const ProducerBatch& batch, Offset base, Offset last, std::int64_t timestamp);
  /// Forgets producers whose last batch is older than `before` (Unix ms).
  void expire(std::int64_t before);
  void clear() { producers_.clear(); }
  std::size_t size() const { return producers_.size(); }

  /// Kafka's .snapshot file. Kafka keeps one entry per producer; we write one per remembered batch, oldest first, so
  /// that Kafka's reader ends up with the last one and ours with all five.
  ByteBuffer encode() const;
  static Result<ProducerState> decode(ByteView bytes);

 private:
  static constexpr std::size_t kRemembered = 5;
  struct Batch {
    std::int32_t last_sequence = -1;
    std::int32_t offset_delta = 0;
    Offset last_offset = kNoOffset;
    std::int64_t timestamp = -1;
  };
  struct Producer {
    std::int16_t epoch = -1;
    std::uint8_t count = 0;
    std::array<Batch, kRemembered> batches;  // oldest first
    void remember(const Batch& batch);
    const Batch& last() const { return batches[count - 1]; }
  };
  std::unordered_map<ProducerId, Producer> producers_;
};

}  // namespace weir::storage
