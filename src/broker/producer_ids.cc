#include "broker/producer_ids.h"

#include <algorithm>

namespace weir::broker {

void ProducerIds::replay(const ProducerIdsRecord& record) { reserved_ = std::max(reserved_, record.next); }

ProducerIds::Grant ProducerIds::next() {
  if (!next_) next_ = reserved_;
  Grant grant{ProducerId((*next_)++), {}};
  // After a failed reservation the next id may lie beyond `reserved_` already.
  if (grant.id.value >= reserved_) grant.reserve = ProducerIdsRecord{std::max(grant.id.value, reserved_) + kBlock};
  return grant;
}

}  // namespace weir::broker
