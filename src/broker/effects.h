// What the core wants done. The core itself never touches a socket, never waits for a disk and never asks for the time.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "broker/request.h"
#include "storage/disk_work.h"
#include "weir/types.h"

namespace weir::broker {

/// One open log (a partition of a topic, or the metadata log). Never used twice while the process lives.
using LogId = Strong<struct LogIdTag, std::uint32_t>;
inline constexpr LogId kMetadataLog{0};
inline constexpr LogId kCheckpointLog{1};  ///< Not a log: the recovery points, whose works also go one after the other.
inline constexpr std::uint32_t kFirstPartitionLog = 2;

/// Encode `response` for the request's version and send it, after the replies to earlier requests of the connection.
/// With `mute` the reply still goes out at once, and then the connection is not read for that long (Kafka's quota law).
struct Reply {
  RequestId request;
  ConnectionId connection;
  Response response;
  Duration mute{};
};

/// The request is finished and nothing is sent (acks=0). `mute` as in Reply.
struct NoReply {
  RequestId request;
  ConnectionId connection;
  Duration mute{};
};

/// The request waits for others to do something (long poll, join): it no longer counts against the request queue, or
/// idle consumers would lock everybody out. Its Reply comes later.
struct LongPoll {
  RequestId request;
  ConnectionId connection;
};

/// Close the connection; `reason` is for the log.
struct CloseConnection {
  ConnectionId connection;
  std::string reason;
};

/// Make everything appended so far durable: a log loop calls `work` once (it may block, it touches nothing of the
/// core), then the core loop calls Core::synced(log, what `work` returned). At most one Sync per log is out at a time:
/// what is appended meanwhile shares the next one (group commit).
struct Sync {
  LogId log;
  storage::DiskWork work;
};

/// Slow work without an answer (unlinking files of a removed topic or an expired segment): any log loop, any time.
struct Chore {
  storage::DiskWork work;
};

using Effect = std::variant<Reply, NoReply, LongPoll, CloseConnection, Sync, Chore>;
using Effects = std::vector<Effect>;

}  // namespace weir::broker
