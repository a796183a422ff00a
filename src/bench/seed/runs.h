// The three runs of `weir bench seed`: as in the question, without work per message, and guarded. Each blocks its
// thread.
#pragma once

#include <span>
#include <string>

#include "bench/seed/receiver.h"
#include "bench/seed/trips.h"
#include "weir/types.h"

namespace weir::bench {

/// What the question's print cost a message, measured from its figures: 1,115.6 ms for 14,484 messages.
inline constexpr Duration kQuestionWork = std::chrono::microseconds(77);

struct Burst {
  Figures figures;
  Observations seen;  ///< queue included, for explain
  std::int64_t max_queue = 0;
  std::int64_t acked_during_loop = 0;
};

/// Sends `steps` times all of `tweets` as fast as possible: poll(0) after each, flush and retry when the queue is full,
/// flush at the end. The consumer spends `work` on each message.
Result<Burst> run_burst(const Place& place, std::span<const std::string> tweets, std::size_t steps, Duration work);

struct GuardedSettings {
  Duration target = std::chrono::milliseconds(50);  ///< of the end-to-end window
  Duration warm_up = std::chrono::seconds(2);
  Duration measure = std::chrono::seconds(10);
  Duration work = kQuestionWork;
  double capacity_per_s = 0;  ///< as measured unguarded
};

struct Guarded {
  Figures figures;  ///< after the warm-up
  Figures warm_up;
  std::int64_t max_queue = 0;  ///< records in the producer at most
  std::int64_t acked_during_loop = 0;
  double capacity_used = 0;         ///< service against capacity_per_s
  std::int64_t window_records = 0;  ///< in force at the end
};

/// The same consumer behind weir's producer with the end-to-end window. The program still sends as fast as it may: it
/// is held in send().
Result<Guarded> run_guarded(const Place& place, std::span<const std::string> tweets, const GuardedSettings& settings);

/// Makes the topic as the question has it (one partition, LogAppendTime); an existing one must be like that.
Result<void> prepare_topic(const Place& place);

}  // namespace weir::bench
