// A store in memory that fails as told: for tests of the sink.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sink/store.h"

namespace weir::sink {

/// Keeps the rules of the SQLite store. Faults are plain members. Owned by one thread.
class MemoryStore final : public Store {
 public:
  struct Stored {
    std::string message;
    std::optional<std::pair<std::string, std::int64_t>> source;
  };

  // -- faults
  std::set<std::string> refused;   ///< rows with these messages can never be stored
  bool full = false;               ///< the disk is full: try again later
  std::function<void()> on_write;  ///< runs inside each write that has rows: to let time pass, say

  // -- what is there
  std::map<std::pair<TopicPartition, std::int64_t>, Stored> rows;
  Positions next;
  std::string cluster_id;
  TopicIds topics;
  std::size_t writes = 0;  ///< tried

  Result<Positions> positions() override { return next; }
  Result<std::string> cluster() override { return cluster_id; }
  Result<void> set_cluster(const std::string& id) override {
    cluster_id = id;
    return {};
  }

  Result<TopicIds> topic_ids() override { return topics; }
  Result<void> set_topic_id(const std::string& topic, const std::string& id) override {
    topics[topic] = id;
    return {};
  }

  Written write(std::span<const Row> batch, const Positions& positions) override {
    ++writes;
    if (on_write && !batch.empty()) on_write();
    if (full) return Written::failed(Written::Kind::kRetry, {ErrorKind::kNoSpace, "disk full"});
    auto added = rows;
    Written out;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Row& row = batch[i];
      if (refused.contains(std::string(row.message))) return Written::refused(i, "refused");
      Stored stored{std::string(row.message), {}};
      if (row.source && row.source_pos) stored.source = {std::string(*row.source), *row.source_pos};
      const auto at = added.find({*row.partition, row.offset.value});
      if (at != added.end() && at->second.source != stored.source) {
        return Written::failed(Written::Kind::kBroken, {ErrorKind::kInvalid, "stored already with another source"});
      }
      bool duplicate = at != added.end();
      for (const auto& [place, other] : added) duplicate |= stored.source && other.source == stored.source;
      if (!duplicate) added.emplace(std::pair(*row.partition, row.offset.value), std::move(stored));
      out.duplicate.push_back(duplicate);
    }
    rows = std::move(added);
    for (const auto& [partition, offset] : positions) next[partition] = offset;
    return out;
  }
};

}  // namespace weir::sink
