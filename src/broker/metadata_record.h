// The records of the broker's one metadata log (topics, configs, quotas, producer-id blocks, cluster id) and their
// bytes.
//
// An entry of the log is one or more records. Layout of a record: type (int8), then the fields below in order, in
// Kafka's primitives (STRING, INT32, UUID ...; a nullable string is a NULLABLE_STRING). New types are added at the end;
// an unknown type stops the start with a clear error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "weir/types.h"
#include "wire/uuid.h"

namespace weir::broker {

/// A topic id (KIP-516), random and never reused.
using TopicId = wire::Uuid;

/// Written once, when the data directory is first used.
struct ClusterRecord {
  std::string cluster_id;
  bool operator==(const ClusterRecord&) const = default;
};

struct TopicRecord {
  std::string name;
  TopicId id{};
  std::int32_t partitions = 0;
  bool operator==(const TopicRecord&) const = default;
};

struct TopicDeletedRecord {
  std::string name;
  TopicId id{};
  bool operator==(const TopicDeletedRecord&) const = default;
};

/// Kafka's ConfigResource types.
inline constexpr std::int8_t kTopicResource = 2;
inline constexpr std::int8_t kBrokerResource = 4;

/// One setting of one resource; no value takes it back to its default. The broker's own have the name "".
struct ConfigRecord {
  std::int8_t resource_type = 0;
  std::string resource_name;
  std::string key;
  std::optional<std::string> value;
  bool operator==(const ConfigRecord&) const = default;
};

/// One quota of one entity; no value removes it. `entity` lists {type, name}: type "user", "client-id" or "ip", no name
/// for the default entity; sorted by type.
struct QuotaRecord {
  std::vector<std::pair<std::string, std::optional<std::string>>> entity;
  std::string key;
  std::optional<double> value;
  bool operator==(const QuotaRecord&) const = default;
};

/// Every producer id below `next` is spoken for. Written before the first id of a block is given out.
struct ProducerIdsRecord {
  std::int64_t next = 0;
  bool operator==(const ProducerIdsRecord&) const = default;
};

using MetadataRecord =
    std::variant<ClusterRecord, TopicRecord, TopicDeletedRecord, ConfigRecord, QuotaRecord, ProducerIdsRecord>;

/// The records of one decision make one entry of the log, so that they are there together or not at all.
ByteBuffer encode(const std::vector<MetadataRecord>& records);
Result<std::vector<MetadataRecord>> decode_metadata_records(ByteView bytes);

}  // namespace weir::broker
