// The private parts of Core that its .cc files share.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "broker/core.h"
#include "storage/record_log.h"

namespace weir::broker {

/// A request that is not answered yet.
struct Core::Open {
  Request request;
  bool long_poll = false;
  bool may_wait = true;         ///< A Fetch before its deadline.
  std::vector<LogId> watching;  ///< A Fetch that waits for these.
};

/// What leaves when a ticket settles: answers of a decision, or the answer of a Produce.
struct Core::Pending {
  std::vector<Answer> answers;
  protocol::ErrorCode on_failure = protocol::ErrorCode::kNone;
  RequestId producer = kNoRequest;
  ProduceAnswer produce;
};

/// The metadata log. Its positions are numbers of records.
struct Core::MetadataState {
  explicit MetadataState(storage::RecordLog opened) : log(std::move(opened)) {}
  storage::RecordLog log;
  std::int64_t appended = 0;
  std::int64_t durable = 0;
  std::optional<std::int64_t> syncing;  ///< Durable up to here when the sync that is out succeeds.
  bool with_checkpoint = false;         ///< That sync writes the recovery points too.
  std::map<std::string, std::int64_t, std::less<>> new_topics;       ///< Durable when the log is up to there.
  std::set<TopicPartition> strays;                                   ///< Found at the start, of no topic.
  std::vector<std::pair<std::int64_t, storage::DiskWork>> removals;  ///< Of files, once the log is durable up to there.
  bool failed = false;                                               ///< A failed fsync: no more changes until restart.
};

}  // namespace weir::broker
