// Records that cannot be stored, on their way to the dead-letter topic.
//
// The record goes there as it is: key, value, headers in order, timestamp. Where it came from and why is added as
// headers: weir.dlq.topic, .partition, .offset, .timestamp, .reason, .attempts. Headers of an earlier time in the
// dead-letter topic are replaced, not stacked, and attempts go on counting. Threads: answers come on the producer's
// thread; the rest belongs to one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/producer.h"
#include "weir/record.h"

namespace weir::sink {

inline constexpr std::string_view kDeadLetterPrefix = "weir.dlq.";

/// The record for the dead-letter topic, ready to send.
Record dead_letter_of(const ConsumedRecord& record, const std::string& topic, std::string_view reason,
                      std::int32_t attempts);

class DeadLetters {
 public:
  /// What became of one: acknowledged there, or not (then it must be sent again).
  struct Answer {
    TopicPartition partition;
    std::uint64_t assignment = 0;
    Offset offset;
    bool acked = false;
    std::string detail = {};
  };

  DeadLetters(Producer& producer, std::string topic) : producer_(producer), topic_(std::move(topic)) {}

  /// Fails when the producer has no room now (kUnavailable) or can never take it (kInvalid); then nothing is answered.
  Result<void> send(const ConsumedRecord& record, std::string_view reason, std::int32_t attempts);
  /// Answers since the last call.
  std::vector<Answer> collect();

 private:
  struct Box {
    std::mutex mutex;
    std::vector<Answer> answers;
  };
  Producer& producer_;
  const std::string topic_;
  std::shared_ptr<Box> box_ = std::make_shared<Box>();  // shared with callbacks, which may come after us
};

}  // namespace weir::sink
