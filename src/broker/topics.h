// The topics there are, their ids and their settings: the image the metadata log replays into.
//
// Owned by the core loop. Changed only by replay().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/metadata_record.h"
#include "weir/types.h"

namespace weir::broker {

struct Topic {
  std::string name;
  TopicId id{};
  std::int32_t partitions = 0;
  std::map<std::string, std::string> configs;  ///< What was set on the topic itself, by Kafka's names.
};

class Topics {
 public:
  void replay(const TopicRecord& record);
  void replay(const TopicDeletedRecord& record);
  void replay(const ConfigRecord& record);

  /// Null when there is none.
  const Topic* find(std::string_view name) const;
  const Topic* find(const TopicId& id) const;
  bool has(const TopicPartition& partition) const;
  /// Another topic whose name differs from `name` only in '.' and '_'; null when there is none.
  const Topic* colliding(std::string_view name) const;
  /// By name.
  const std::map<std::string, Topic, std::less<>>& all() const { return topics_; }

 private:
  std::map<std::string, Topic, std::less<>> topics_;
};

/// Why `name` cannot be a topic's name, in Kafka's words; nothing when it can.
std::optional<std::string> topic_name_fault(std::string_view name);

}  // namespace weir::broker
