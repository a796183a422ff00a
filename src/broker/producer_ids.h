// Producer ids, given out of blocks that were reserved durably first: never reused, whatever crashes.
#pragma once

#include <optional>

#include "broker/metadata_record.h"
#include "weir/types.h"

namespace weir::broker {

/// Owned by the core loop.
class ProducerIds {
 public:
  /// Kafka's block size.
  static constexpr std::int64_t kBlock = 1000;

  struct Grant {
    ProducerId id;
    /// Set when a new block has to be reserved for this id: commit it together with the answer.
    std::optional<ProducerIdsRecord> reserve;
  };
  Grant next();
  /// While loading, the reserved ids count as used: some may have been given out.
  void replay(const ProducerIdsRecord& record);

 private:
  std::int64_t next_ = 0;
  std::int64_t reserved_ = 0;  // ids below are reserved
};

}  // namespace weir::broker
