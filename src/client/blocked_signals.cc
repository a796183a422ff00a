#include "client/blocked_signals.h"

#include <signal.h>

namespace weir::client {

struct BlockedSignals::Mask {
  sigset_t set;
};

BlockedSignals::BlockedSignals() : before_(std::make_unique<Mask>()) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_->set);
}

BlockedSignals::~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_->set, nullptr); }

}  // namespace weir::client
