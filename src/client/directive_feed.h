// Follows the guard: asks it over HTTP what a producer is to do, and passes that on.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/address.h"
#include "weir/flow.h"
#include "weir/types.h"

namespace weir::client {

/// What a producer was last told, so that what is told no longer can be taken back. Owned by one thread.
class FollowedDirectives {
 public:
  /// `apply` (Producer::apply) gets every directive of `told`, and what was told before and is not any more once again,
  /// expired.
  void follow(const std::vector<Directive>& told, const std::function<void(const Directive&)>& apply);

 private:
  std::map<Scope, Directive> followed_;
};

struct DirectiveFeedSettings {
  runtime::Address guard;  ///< Where `weir guard` listens.
  std::string client_id;
  std::vector<std::string> topics;
  /// False for a producer with an end-to-end window: then it follows the operator's orders only, never window and law.
  bool laws = true;
  Duration period = defaults::kGuardPeriod;
};

/// Owns one thread. A guard that does not answer changes nothing: what it said last expires by itself.
class DirectiveFeed {
 public:
  /// `apply` is called as FollowedDirectives says, once a period, on the feed's thread.
  DirectiveFeed(DirectiveFeedSettings settings, std::function<void(const Directive&)> apply);
  ~DirectiveFeed();  ///< Stops.
  DirectiveFeed(const DirectiveFeed&) = delete;
  DirectiveFeed& operator=(const DirectiveFeed&) = delete;

  /// start() and stop() belong to the owner. stop() takes as long as the guard's answer, at most a second; idempotent.
  void start();
  void stop();

 private:
  void run();

  DirectiveFeedSettings settings_;
  std::function<void(const Directive&)> apply_;
  FollowedDirectives followed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::client
