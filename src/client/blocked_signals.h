// Threads inherit the signal mask: ours and the client library's are made with every signal blocked, so that a signal
// always reaches the application's own threads.
#pragma once

#include <memory>

namespace weir::client {

/// Every signal is blocked in this thread while one of these lives.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  struct Mask;
  std::unique_ptr<Mask> before_;
};

}  // namespace weir::client
