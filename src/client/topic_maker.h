// Makes the pipeline's topics before anything is sent to them: the broker would make them with its own num.partitions.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/admin.h"
#include "weir/types.h"

namespace weir::client {

/// Partitions of topics for log entries, and of the one for dead letters.
inline constexpr std::int32_t kLogPartitions = 16;
inline constexpr std::int32_t kDeadLetterPartitions = 8;

/// The largest record of the dead-letter topic: above what brokers take for others by default (1 MiB), as a dead letter
/// has more headers than the record it was.
inline constexpr Bytes kLargestDeadLetter = 4 * kMiB;

NewTopic dead_letter_topic(const std::string& name, std::int32_t partitions);
/// The three of a pipeline.
std::vector<NewTopic> pipeline_topics(const std::string& topic, const std::string& urgent_topic,
                                      const std::string& dead_letters);

/// Makes those that are missing; what exists stays as it is. Whoever comes first makes them, the others find them.
Result<void> make_missing_topics(Admin& admin, const std::vector<NewTopic>& topics);

/// Does so in the background as soon as a broker answers. Owns one thread.
class TopicMaker {
 public:
  /// `ready` is called once, on the thread: the topics are there, or the cluster has refused to make them, which is
  /// said and left to the cluster's own ways.
  TopicMaker(AdminSettings admin, std::vector<NewTopic> topics, std::function<void()> ready);
  ~TopicMaker();  ///< Stops, within about a second.
  TopicMaker(const TopicMaker&) = delete;
  TopicMaker& operator=(const TopicMaker&) = delete;

 private:
  void run();

  Admin admin_;
  const std::vector<NewTopic> topics_;
  const std::function<void()> ready_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::client
