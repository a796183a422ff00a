// Where the sink puts records. The rows and the positions of one write go together or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::sink {

/// One row of `logs`. The texts belong to the caller and live for the time of the write.
struct Row {
  const TopicPartition* partition = nullptr;
  Offset offset;
  std::string_view server_id;
  std::string_view level;
  std::string_view message;
  std::int64_t timestamp = 0;                   ///< Unix ms, of the entry
  std::optional<std::string_view> source = {};  ///< identity of its file or stream; none: not one of weir's records
  std::optional<std::int64_t> source_pos = {};
};

/// The next offset wanted of each partition.
using Positions = std::map<TopicPartition, Offset>;

/// Topic ids by topic name.
using TopicIds = std::map<std::string, std::string>;

struct Written {
  enum class Kind {
    kDone,     ///< durable
    kRefused,  ///< rows[index] can never be stored; nothing was written
    kRetry,    ///< not now (disk full, busy); nothing was written
    kBroken,   ///< the store contradicts the log: go no further; nothing was written
  };
  Kind kind = Kind::kDone;
  std::vector<bool> duplicate = {};  ///< kDone: by row, true when the store had its (source, source_pos) already
  std::size_t index = 0;
  Error error = {};

  static Written refused(std::size_t index, std::string why) {
    return {.kind = Kind::kRefused, .index = index, .error = {ErrorKind::kInvalid, std::move(why)}};
  }
  static Written failed(Kind kind, Error error) { return {.kind = kind, .error = std::move(error)}; }
};

/// Owned by one thread.
class Store {
 public:
  virtual ~Store() = default;
  virtual Result<Positions> positions() = 0;
  /// The cluster the positions belong to; empty before the first set_cluster().
  virtual Result<std::string> cluster() = 0;
  virtual Result<void> set_cluster(const std::string& id) = 0;
  /// The ids of the topics the rows come from, as they were first seen; a store made before ids were kept has none.
  virtual Result<TopicIds> topic_ids() = 0;
  virtual Result<void> set_topic_id(const std::string& topic, const std::string& id) = 0;
  /// A row whose (source, source_pos) is there is a duplicate; one whose (topic, part, off) is there with another
  /// source is kBroken, never ignored.
  virtual Written write(std::span<const Row> rows, const Positions& next) = 0;
};

}  // namespace weir::sink
