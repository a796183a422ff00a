// The question's consumer: poll, subtract the stamp, spend some time on each message.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/seed/trips.h"
#include "client/raw.h"
#include "weir/types.h"

namespace weir::bench {

/// Where a run takes place.
struct Place {
  std::string bootstrap;
  std::string topic = "twitter-stream";
  std::string group = "twitter-consumers";
};

/// Owned by one thread at a time.
class Receiver {
 public:
  /// Joins the group as the question's consumer does and reads past whatever the topic holds already: sends a marker of
  /// its own and waits for it. What is produced after that is the run.
  static Result<Receiver> open(const Place& place, Duration timeout = std::chrono::seconds(60));

  /// Receives `expected` messages (negative: not known yet, look again) into `trips`, spending `work` on each.
  /// `on_progress` (may be empty) gets the next offset to be read, at least every `kProgressEvery`, also when nothing
  /// came. Fails when nothing comes for 30 s.
  Result<void> receive(std::span<Trip> trips, const std::atomic<std::int64_t>& expected, Duration work,
                       const std::function<void(Offset next)>& on_progress = {});
  /// Leaves the group.
  void close();

  static constexpr Duration kProgressEvery = std::chrono::milliseconds(1);

 private:
  Receiver(std::unique_ptr<client::RawConsumer> consumer, Offset next) : consumer_(std::move(consumer)), next_(next) {}

  std::unique_ptr<client::RawConsumer> consumer_;
  Offset next_;
};

}  // namespace weir::bench
