#include "flow/token_bucket.h"

#include <algorithm>

#include "base/assert.h"

namespace weir::flow {

TokenBucket::TokenBucket(double rate, double burst, MonoTime now)
    : rate_(rate), burst_(burst), balance_(burst), at_(now) {
  WEIR_ASSERT(rate > 0 && burst >= 1);
}

void TokenBucket::refill(MonoTime now) {
  if (now <= at_) return;
  balance_ = std::min(burst_, balance_ + rate_ * to_seconds(now - at_));
  at_ = now;
}

bool TokenBucket::ready(MonoTime now) {
  refill(now);
  return balance_ > 0;
}

MonoTime TokenBucket::ready_at(MonoTime now) {
  refill(now);
  if (balance_ > 0) return now;
  // At exactly zero it is not ready yet; one nanosecond more covers what was cut off, another the rounding.
  return at_ + from_seconds(std::min(-balance_ / rate_, 1e9)) + Duration(2);
}

void TokenBucket::set_rate(MonoTime now, double rate, double burst) {
  WEIR_ASSERT(rate > 0 && burst >= 1);
  refill(now);
  rate_ = rate;
  burst_ = burst;
  balance_ = std::min(balance_, burst_);
}

}  // namespace weir::flow
