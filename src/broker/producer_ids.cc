#include "broker/producer_ids.h"

#include <algorithm>

namespace weir::broker {

ProducerIds::Grant ProducerIds::next() {
  Grant grant{ProducerId(next_), std::nullopt};
  if (next_ >= reserved_) {
    reserved_ = next_ + kBlock;
    grant.reserve = ProducerIdsRecord{reserved_};
  }
  ++next_;
  return grant;
}

void ProducerIds::replay(const ProducerIdsRecord& record) {
  if (record.next <= reserved_) return;  // our own reservation, replayed as it was committed
  reserved_ = next_ = record.next;
}

}  // namespace weir::broker
