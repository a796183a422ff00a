// Feeds a producer's end-to-end window with what a consumer group has committed, read over the protocol as a stranger
// would.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/admin.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace weir::client {

struct ProgressFeedSettings {
  AdminSettings admin{.client_id = "weir-progress", .timeout = std::chrono::seconds(2)};
  std::string group;
  std::vector<std::string> topics;  ///< Commits of other topics are left out.
  /// At most a fifth of the window's target, or the window works with stale progress.
  Duration period = std::chrono::milliseconds(200);
  /// Also tell the producer the group's lag in records, once a second: for `max_lag`. Unknown when it cannot be
  /// measured.
  bool lag = false;
};

/// The topics whose id is not the one of the last time. `known` follows; a topic that is not there keeps its id until
/// it is made anew, one without an id (an old broker) is never told.
std::vector<std::string> made_anew(std::map<std::string, std::string>& known,
                                   const std::vector<TopicDescription>& topics);

/// One pass of the feed: pure of threads, so that tests drive it. Owned by one thread at a time.
class ProgressReader {
 public:
  explicit ProgressReader(ProgressFeedSettings settings);
  /// The group's committed offsets of our topics; or why they could not be read.
  Result<Committed> read();
  /// Our topics that were deleted and made anew since the last call; none when it cannot be told now.
  std::vector<std::string> topics_made_anew();
  /// Records between the committed offsets and the ends of the logs. A partition without a commit counts from its
  /// start.
  Result<std::int64_t> lag(const Committed& committed);
  void interrupt() { admin_.interrupt(); }

 private:
  ProgressFeedSettings settings_;
  Admin admin_;
  std::map<std::string, std::string> topic_ids_;
};

/// Owns one thread. start() and stop() belong to the owner; `producer` outlives the feed. A broker that does not answer
/// changes nothing: the window stays where it is until `window_release_after` lets it go. A group without a commit is
/// an answer: nothing was consumed. A topic made anew (looked for once a second) is forgotten by the producer's window.
class ProgressFeed {
 public:
  ProgressFeed(ProgressFeedSettings settings, Producer& producer);
  ~ProgressFeed();  ///< Stops.
  ProgressFeed(const ProgressFeed&) = delete;
  ProgressFeed& operator=(const ProgressFeed&) = delete;

  void start();
  /// Within about a second, even while the broker hangs. Idempotent.
  void stop();

 private:
  void run();

  ProgressFeedSettings settings_;
  Producer& producer_;
  ProgressReader reader_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::client
