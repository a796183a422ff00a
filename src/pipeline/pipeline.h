// `weir up`: broker, agent, sink and guard in one process. They meet over loopback, as strangers would; only their
// owner is the same.
//
//   start: lock, broker, topics, sink, producer + agent, guard      end: inputs stop, drain to the store, sink, guard,
//   broker
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "broker/broker.h"
#include "client/directive_feed.h"
#include "client/progress_feed.h"
#include "guard/guard.h"
#include "pipeline/report.h"
#include "pipeline/settings.h"
#include "runtime/file.h"
#include "sink/sink.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::pipeline {

struct PipelineSettings {
  Settings parts = default_settings();
  /// Holds everything: broker/, agent/, logs.db. Locked while the pipeline runs.
  std::filesystem::path data;
  /// Use this Kafka and start no broker. Empty: the embedded one.
  std::string bootstrap;
  /// Where the embedded broker listens; when the port is taken, the next free one (20 are tried).
  std::string listen = "127.0.0.1:9092";
};

/// Every function belongs to the owner's thread, except where it says otherwise.
class Pipeline {
 public:
  /// Brings every part up, or none. `notice` gets one line at a time for people: ports chosen, warnings.
  static Result<std::unique_ptr<Pipeline>> start(PipelineSettings settings,
                                                 const std::function<void(const std::string&)>& notice);
  /// finish() with a deadline of zero when it was not called.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  std::string broker_address() const { return bootstrap_; }
  std::string page_address() const { return page_; }

  /// Takes the measurements of the last second, shows them to the guard, passes directives on. About once a second.
  Status tick(MonoTime now);
  /// Every input has ended and everything read has been acknowledged.
  bool ended() const { return agent_->ended(); }
  /// Empty, or why nothing can move.
  std::string stuck() const { return agent_->stats().stuck; }
  /// Set when a part has stopped by itself and the pipeline cannot go on.
  std::optional<Error> failed() const;

  /// Stops the inputs, drains to the store within `deadline`, ends every part, and says what became of every record.
  /// `shown`, when given, gets a status once a second on a thread of ours. The last call: nothing but the destructor
  /// comes after it.
  Report finish(Duration deadline, const std::function<void(const Status&)>& shown = {});

 private:
  Pipeline() = default;
  Result<void> start_broker(const std::function<void(const std::string&)>& notice);
  Result<void> create_topics();
  Result<void> start_sink();
  Result<void> start_agent();
  Result<void> start_guard(const std::function<void(const std::string&)>& notice);
  /// Gives the producer what the guard says now, and takes back what it no longer says. Any thread.
  void follow_directives();
  /// The group as the guard last saw it; null when it does not know.
  const guard::GroupLag* group_in(const guard::LagSnapshot& snapshot) const;
  std::optional<double> lag_seconds(const guard::LagSnapshot& snapshot) const;
  std::optional<std::int64_t> guard_lag() const;

  // In the order they start; destroyed in reverse.
  PipelineSettings settings_;
  Registry registry_;
  std::unique_ptr<runtime::FileLock> lock_;
  std::unique_ptr<broker::Broker> broker_;
  std::string bootstrap_;
  std::unique_ptr<sink::Sink> sink_;
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<client::ProgressFeed> progress_;
  std::unique_ptr<guard::Guard> guard_;
  std::string page_;

  std::mutex directives_mutex_;
  client::FollowedDirectives followed_;

  mutable std::mutex status_mutex_;
  guard::PipelineStatus shown_;  // what the guard's thread reads
  MonoTime last_tick_{};
  Status last_;
};

}  // namespace weir::pipeline
