// Members of a group over a broker in memory, in virtual time: for tests of the consumer.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/consumer_core.h"
#include "client/memory_broker.h"
#include "weir/consumer.h"

namespace weir::testing_consumer {

using namespace std::chrono_literals;
using client::MemoryBroker;

inline const TopicPartition kP0{"t", PartitionId(0)};
inline const TopicPartition kP1{"t", PartitionId(1)};

inline ConsumerSettings of_group(std::string group = "g") {
  ConsumerSettings settings;
  settings.group_id = std::move(group);
  settings.topics = {"t"};
  return settings;
}

struct Member {
  Member(MemoryBroker& broker, const ConsumerSettings& settings, ConsumerHooks hooks = {})
      : core(broker.consumer(settings, std::move(hooks))), consumer(core, false) {}
  std::vector<ConsumedRecord> poll() {
    auto batch = consumer.poll(0s);
    EXPECT_TRUE(batch.has_value()) << batch.error().message;
    return batch.value_or(std::vector<ConsumedRecord>{});
  }
  /// Everything there is to read now.
  std::vector<ConsumedRecord> poll_all() {
    std::vector<ConsumedRecord> all;
    while (true) {
      auto batch = poll();
      if (batch.empty()) return all;
      all.insert(all.end(), batch.begin(), batch.end());
    }
  }
  void finish(const std::vector<ConsumedRecord>& records) {
    for (const auto& record : records) consumer.finish(record);
  }
  std::shared_ptr<ConsumerCore> core;
  Consumer consumer;
};

struct World {
  explicit World(int partitions = 1, int records_each = 0) {
    broker.create_topic("t", partitions);
    for (int p = 0; p < partitions; ++p) fill({"t", PartitionId(p)}, records_each);
  }
  void fill(const TopicPartition& partition, int count) {
    for (int i = 0; i < count; ++i) broker.append(partition, std::to_string(broker.log_end(partition).value));
  }
  void run(std::vector<Member*> members, Duration time = 0ms, Duration step = 10ms) {
    for (int i = 0; i < 6; ++i) {
      for (auto* member : members) member->core->step();
    }
    for (Duration passed{}; passed < time; passed += step) {
      clock.advance(step);
      for (auto* member : members) member->core->step();
    }
  }
  ManualClock clock;
  MemoryBroker broker{clock};
};

inline std::vector<std::int64_t> offsets(const std::vector<ConsumedRecord>& records) {
  std::vector<std::int64_t> found;
  for (const auto& record : records) found.push_back(record.offset.value);
  return found;
}

}  // namespace weir::testing_consumer
