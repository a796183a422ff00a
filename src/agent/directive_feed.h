// Follows a guard in another process: asks it once a second what it tells this producer.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/address.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace weir::agent {

struct DirectiveFeedSettings {
  runtime::Address guard;
  std::string client_id;
  std::vector<std::string> topics;
  /// False with an end-to-end window, which does the lag law's work: then only an operator's orders are followed.
  bool laws = true;
  Duration period = defaults::kGuardPeriod;
};

/// Owns one thread; `producer` outlives it. A guard that cannot be reached changes nothing: what it said last expires.
class DirectiveFeed {
 public:
  DirectiveFeed(DirectiveFeedSettings settings, Producer& producer)
      : settings_(std::move(settings)), producer_(producer) {}
  ~DirectiveFeed() { stop(); }

  void start();
  /// Within about a second. Idempotent.
  void stop();

 private:
  void run();
  void follow(const std::vector<Directive>& told);

  const DirectiveFeedSettings settings_;
  Producer& producer_;
  std::map<Scope, Directive> followed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::agent
