// Token bucket with debt: a rate with a burst, in records or bytes.
#pragma once

#include "weir/types.h"

namespace weir::flow {

/// Admits while the balance is above zero and then takes the whole amount, even into debt: a record larger than the
/// burst passes, and what follows waits until the debt is paid. The long-run rate is exact and nothing can be too large
/// to pass. (Pulsar's publish limiter and Kafka's message quotas work so.) Owned by one loop.
class TokenBucket {
 public:
  /// `rate` a second, above 0; `burst` the most that can be saved up, at least 1. Starts full.
  TokenBucket(double rate, double burst, MonoTime now);

  bool ready(MonoTime now);
  void take(double amount) { balance_ -= amount; }
  /// When ready() turns true if nothing is taken; `now` when it is.
  MonoTime ready_at(MonoTime now);
  /// Keeps the balance, cut to the new burst.
  void set_rate(MonoTime now, double rate, double burst);
  double rate() const { return rate_; }

 private:
  void refill(MonoTime now);

  double rate_;
  double burst_;
  double balance_;
  MonoTime at_;
};

}  // namespace weir::flow
