// The client library with nothing of ours in between: what `weir bench` measures unguarded, as an application in any
// language would use it. Library defaults throughout; no thread of ours, reports are served only by poll() and flush().
//
// Threads: each object belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/types.h"

namespace weir::client {

/// Settings in librdkafka spelling; `bootstrap.servers` at least.
using RawSettings = std::vector<std::pair<std::string, std::string>>;

class RawProducer {
 public:
  /// Called for each delivery report from inside poll() or flush(): "" or the error, and the offset.
  using OnReport = std::function<void(std::string_view error, Offset offset)>;

  static Result<std::unique_ptr<RawProducer>> open(const RawSettings& settings, OnReport on_report = {});
  ~RawProducer();

  /// Copies the value into the library's queue. False: the queue is full. Other refusals are an Error.
  Result<bool> produce(const std::string& topic, std::string_view value, std::string_view key = {});
  /// Serves delivery reports, waiting up to `wait` for one; how many it served.
  int poll(Duration wait);
  /// Records and reports in the library, as `len(producer)` says elsewhere.
  std::size_t queue_length() const;
  /// Waits until the queue is empty, at most `deadline`; what is left.
  std::size_t flush(Duration deadline);

 private:
  RawProducer() = default;
  struct State;
  std::unique_ptr<State> state_;
};

struct RawMessage {
  std::string value;
  PartitionId partition;
  Offset offset;
  std::int64_t timestamp_ms = -1;
  bool log_append_time = false;
};

class RawConsumer {
 public:
  /// Subscribes to `topics` as a member of `group.id`.
  static Result<std::unique_ptr<RawConsumer>> open(const RawSettings& settings, const std::vector<std::string>& topics);
  ~RawConsumer();

  /// The next message, waiting up to `wait`; nothing when none came. Errors of the broker are an Error.
  Result<std::optional<RawMessage>> poll(Duration wait);
  /// True once partitions are assigned (serves the queue; a message that came with it is kept for poll()).
  bool wait_assigned(Duration wait);
  /// Leaves the group; returns within the deadline.
  void close(Duration deadline);

 private:
  RawConsumer() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::client
