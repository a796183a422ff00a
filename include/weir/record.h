// A record as an application hands it to a Producer or gets it from a Consumer.
//
// Value types that own their bytes: safe to move between threads, nothing of the client library stays alive behind
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weir/flow.h"
#include "weir/types.h"

namespace weir {

/// A header of a record. Names may repeat; order is kept. No value means Kafka's null, which is not the empty value.
struct Header {
  std::string name;
  std::optional<std::string> value;
  auto operator<=>(const Header&) const = default;
};

/// What is sent. No key and no value are Kafka's null.
struct Record {
  std::string topic;
  /// Empty: chosen by the key as Java does (murmur2), or, without a key, a random one that sticks for a batch.
  std::optional<PartitionId> partition = std::nullopt;
  std::optional<std::string> key = std::nullopt;
  std::optional<std::string> value = std::nullopt;
  std::vector<Header> headers = {};
  /// The epoch (the default) means: the time of send().
  WallTime timestamp{};
  Lane lane = Lane::kNormal;
};

/// What was read, with its place in the log.
struct ConsumedRecord {
  TopicPartition partition;
  Offset offset;
  /// The record's timestamp, Unix milliseconds on the wire.
  WallTime timestamp{};
  /// True: the broker stamped it at append (one stamp for a batch). False: the producer did.
  bool log_append_time = false;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<Header> headers;
  /// Which assignment of the partition it came with; Consumer::finish uses it to fence records of a lost assignment.
  std::uint64_t assignment = 0;
};

}  // namespace weir
