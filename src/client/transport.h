// The seam under Producer and Consumer: the client library on one side, an in-memory broker for tests on the other.
//
// Threads: a transport belongs to the thread that steps its core, except where a function says otherwise. No function
// waits longer than the time it is given; those without one do not wait.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/consumer.h"
#include "weir/producer.h"

namespace weir::client {

/// Called from any thread when step() has something to do. Must not block.
using Wake = std::function<void()>;

// ---- Producing -----------------------------------------------------------------------------------------------------

/// What became of a record that was handed over. Every one gets exactly one report.
struct Report {
  enum class Kind : std::uint8_t {
    kAcked,
    kPermanent,  ///< trying again cannot help
    kGivenBack,  ///< not acknowledged, and the transport gave up on it: to be handed over again after reopen()
  };
  void* token = nullptr;
  Kind kind = Kind::kAcked;
  std::string_view reason = {};  ///< stable word
  std::string detail = {};
  PartitionId partition{-1};
  Offset offset = kNoOffset;
};

class ProducerTransport {
 public:
  enum class Hand : std::uint8_t {
    kTaken,
    kFull,
    kPermanent,  ///< this record can never be sent
    kBroken,     ///< nothing can be sent any more before reopen()
  };
  struct Handed {
    Hand result = Hand::kTaken;
    std::string_view reason = {};  ///< unless taken
    std::string detail = {};
  };

  virtual ~ProducerTransport() = default;
  /// `record`'s bytes stay valid and unchanged until its report.
  virtual Handed hand_over(const Record& record, WallTime timestamp, void* token) = 0;
  /// Appends the reports there are.
  virtual void collect(std::vector<Report>& out) = 0;
  /// Sends what lingers for a batch now; may work up to `wait` on it.
  virtual void push(Duration wait) = 0;
  /// Gives everything outstanding back: the next collects report it kGivenBack. Call it again until nothing is left.
  /// With `patience` a broker's answer to what is on its way is awaited for so long since the first call: given back,
  /// it might be in the log already.
  virtual void give_back(Duration patience) = 0;
  /// Starts anew after reports of kGivenBack; nothing is outstanding.
  virtual Result<void> reopen() = 0;
  /// True while no broker can be reached.
  virtual bool down() const = 0;
  /// The last delay asked for by a broker's quota.
  virtual Duration throttle() const = 0;
  virtual std::vector<SettingInForce> in_force() const = 0;
};

// ---- Consuming -----------------------------------------------------------------------------------------------------

struct StartAt {
  TopicPartition partition;
  Offset offset;
};

/// What the group, the log or the network wants from the core. Answered by calls, in whatever later step.
struct ConsumerEvent {
  enum class Kind : std::uint8_t {
    kAssign,      ///< answer with start(), of those that can be started yet
    kRevoke,      ///< answer with stop()
    kLost,        ///< as kRevoke, but nothing can be committed any more
    kCommitted,   ///< `offsets` were acknowledged, or `error` says why not
    kOutOfRange,  ///< `partition`: the position is not in the log any more; answer with seek()
    kFatal,       ///< `error`: the consumer cannot go on
  };
  Kind kind;
  std::vector<TopicPartition> partitions = {};
  std::map<TopicPartition, Offset> offsets = {};
  TopicPartition partition = {};
  std::optional<Error> error = {};
};

class ConsumerTransport {
 public:
  virtual ~ConsumerTransport() = default;
  /// Keeps the membership alive and appends what happened.
  virtual void serve(std::vector<ConsumerEvent>& out) = 0;
  /// Committed offset (empty: none), first and end offset of each partition, without those whose leader is missing or
  /// does not answer; fails when the group's coordinator does not. All within `wait`.
  virtual Result<std::vector<AssignedPartition>> look_up(const std::vector<TopicPartition>& partitions,
                                                         Duration wait) = 0;
  /// The first call after a kAssign answers it; those of its partitions that were left out may follow in later calls.
  virtual void start(const std::vector<StartAt>& partitions) = 0;
  virtual void stop(const std::vector<TopicPartition>& partitions) = 0;
  virtual void seek(const TopicPartition& partition, Offset offset) = 0;
  /// Appends up to `max` prefetched records of one partition, in order. Any thread, one at a time per consumer.
  virtual void read(const TopicPartition& partition, std::size_t max, std::vector<ConsumedRecord>& out) = 0;
  /// Once everything prefetched has been read: the next offset, past control records and aborted ones. Thread as
  /// read().
  virtual std::optional<Offset> end_reached(const TopicPartition& partition) = 0;
  /// Last known end of the log, the stable one under read_committed. Any thread.
  virtual std::optional<Offset> log_end(const TopicPartition& partition) const = 0;
  /// Answered by kCommitted.
  virtual void commit(const std::map<TopicPartition, Offset>& next) = 0;
  /// Begins to leave; goes on with serve() (a last kRevoke comes) until left().
  virtual void leave() = 0;
  virtual bool left() const = 0;
  virtual std::vector<SettingInForce> in_force() const = 0;
};

// ---- The client library --------------------------------------------------------------------------------------------

Result<std::unique_ptr<ProducerTransport>> open_rdkafka_producer(const ProducerSettings& settings, Wake wake);
/// Whether the library takes all these settings together (mechanisms, files): what opening would say, without a broker.
Result<void> try_rdkafka_consumer(const ConsumerSettings& settings);
Result<std::unique_ptr<ConsumerTransport>> open_rdkafka_consumer(const ConsumerSettings& settings, Wake wake);

}  // namespace weir::client
