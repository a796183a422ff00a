// Producer ids: given out from blocks that are on disk before their first id leaves, so that none is ever used twice.
//
// Owned by the core loop. A restart skips what was left of the block in use.
#pragma once

#include <optional>

#include "broker/metadata_record.h"
#include "weir/types.h"

namespace weir::broker {

class ProducerIds {
 public:
  /// Ids reserved at once, as in Kafka.
  static constexpr std::int64_t kBlock = 1000;

  struct Grant {
    ProducerId id;
    /// Set when the id lies beyond what is reserved: commit it together with the answer.
    std::optional<ProducerIdsRecord> reserve;
  };

  void replay(const ProducerIdsRecord& record);
  /// Ids below are reserved.
  std::int64_t reserved() const { return reserved_; }
  /// An id nobody has had. Its answer must leave through Core::commit also when there is nothing to reserve, since the
  /// block may not be durable yet.
  Grant next();

 private:
  std::int64_t reserved_ = 0;         // every id below is spoken for
  std::optional<std::int64_t> next_;  // nothing until the first grant after start
};

}  // namespace weir::broker
