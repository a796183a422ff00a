// Where the guard asks about a cluster: Kafka, or a fake in tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/admin.h"
#include "weir/types.h"

namespace weir::guard {

struct GroupFacts {
  std::string state;                   ///< "" when unknown.
  std::optional<std::size_t> members;  ///< None when that cannot be told.
  /// Partitions that members hold. None when that cannot be told (another kind of group): then every topic counts.
  std::optional<std::vector<TopicPartition>> assigned;
};
struct LogEnds {
  Offset start;
  Offset end;
};

/// Called by one thread at a time, except interrupt(). Every call returns within the source's own deadline.
class ClusterSource {
 public:
  struct Groups {
    std::map<std::string, client::GroupListing> groups;
    std::vector<Error> failed;  ///< Coordinators that did not answer: their groups are missing.
  };

  virtual ~ClusterSource() = default;
  virtual Result<Groups> groups() = 0;
  virtual std::map<std::string, Result<GroupFacts>> facts(const std::vector<client::GroupListing>& groups) = 0;
  virtual std::map<std::string, Result<client::Committed>> committed(const std::vector<std::string>& groups) = 0;
  /// Partitions of those of the topics that exist.
  virtual Result<std::map<std::string, std::vector<PartitionId>>> partitions(
      const std::vector<std::string>& topics) = 0;
  virtual std::map<TopicPartition, Result<LogEnds>> ends(const std::vector<TopicPartition>& partitions) = 0;
  /// Any thread: the present call and all later ones fail soon.
  virtual void interrupt() {}
};

/// The real one.
std::unique_ptr<ClusterSource> kafka_source(client::AdminSettings settings);

/// What one poll asked, in the one order that never shows a negative lag: commits first, ends second.
struct ClusterSample {
  struct Group {
    GroupFacts facts;
    client::Committed committed;
  };
  std::map<std::string, Result<Group>> groups;
  bool groups_complete = true;  ///< False: a group that is missing may still exist.
  std::map<std::string, std::vector<PartitionId>> topics;
  bool topics_complete = true;  ///< False: a topic that is missing may still exist.
  std::map<TopicPartition, Result<LogEnds>> ends;
  std::vector<std::string> errors;
};

/// Asks `source` about `only` these groups, or all when empty (named groups need not be listed), and about the logs of
/// their topics and of `topics`. An error only when nothing at all could be asked.
Result<ClusterSample> take_sample(ClusterSource& source, const std::vector<std::string>& only,
                                  const std::vector<std::string>& topics = {});

}  // namespace weir::guard
