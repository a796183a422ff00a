// A broker in memory, with both transports to it: for tests of everything that produces or consumes, in virtual time.
//
// It keeps what was produced, moves groups from one generation to the next, and fails as told. Faults are plain
// members: set them, then step the core. Threads: one mutex inside; the public members belong to the test's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/transport.h"

namespace weir {
class ProducerCore;
class ConsumerCore;
}  // namespace weir

namespace weir::client {

class MemoryBroker {
 public:
  explicit MemoryBroker(const Clock& clock) : clock_(clock) {}

  // -- faults
  bool up = true;                 ///< false: nobody can connect; the client library keeps what it has and tries on
  bool answering = true;          ///< false: takes connections, answers nothing
  Duration ack_delay{};           ///< from append to acknowledgement
  Bytes max_message = 1'000'000;  ///< a batch with a larger record is refused whole
  std::size_t batch_records = 1;  ///< records refused together with one that is too large
  bool commits_fail = false;
  std::set<TopicPartition> leaderless;  ///< nothing can be asked or fetched of them
  bool leaving_hangs = false;           ///< a member that leaves gets no answer
  std::function<void()> on_read;        ///< runs once, inside a consumer's next read, before it takes anything
  bool gives_topic_ids = true;          ///< false: a broker from before topics had ids
  int failing_reopens = 0;              ///< so many attempts to start a client anew fail
  /// Every producer's library gives up at once on what it holds, as after a fatal error. True: it had been appended.
  void break_producers(bool appended);

  // -- the log
  void create_topic(const std::string& topic, int partitions);
  /// Its log is gone; members go on where they are when it is made anew.
  void delete_topic(const std::string& topic);
  /// As a broker's metadata tells them, of the topics that exist.
  Result<std::map<std::string, std::string>> topic_ids(const std::vector<std::string>& topics) const;
  /// Appends as another producer would; returns the offset.
  Offset append(const TopicPartition& partition, std::string value);
  /// A commit or abort marker, or a record of an aborted transaction: takes an offset, is never delivered.
  void append_hidden(const TopicPartition& partition);
  /// Retention: everything before `start` is gone.
  void trim(const TopicPartition& partition, Offset start);
  std::vector<ConsumedRecord> records(const TopicPartition& partition) const;
  /// Batches refused as too large.
  std::size_t refusals() const { return refusals_; }
  /// All values of a topic, partition by partition.
  std::vector<std::string> values(const std::string& topic) const;
  Offset log_end(const TopicPartition& partition) const;

  // -- groups
  std::optional<Offset> committed(const std::string& group, const TopicPartition& partition) const;
  void set_committed(const std::string& group, const TopicPartition& partition, Offset next);
  /// The coordinator drops every member: partitions are lost, then assigned anew.
  void drop_members(const std::string& group);
  std::uint64_t generation(const std::string& group) const;
  std::size_t members(const std::string& group) const;
  /// Bytes of values sent to consumers, prefetch thrown away included.
  Bytes fetched_bytes() const { return fetched_bytes_; }
  /// Records prefetched per partition.
  std::size_t prefetch = 100;

  // -- clients
  std::shared_ptr<ProducerCore> producer(const ProducerSettings& settings);
  std::shared_ptr<ConsumerCore> consumer(const ConsumerSettings& settings, ConsumerHooks hooks = {});

 private:
  friend class MemoryProducer;
  friend class MemoryConsumer;
  struct Log {
    struct Stored {
      ConsumedRecord record;
      bool hidden = false;
    };
    Offset start{0};
    std::vector<Stored> stored;  // from `start` on
    Offset end() const { return start + static_cast<std::int64_t>(stored.size()); }
  };
  struct Group {
    std::vector<class MemoryConsumer*> members;
    std::map<TopicPartition, class MemoryConsumer*> owners;
    std::map<TopicPartition, Offset> committed;
    std::uint64_t generation = 0;
  };

  Log& log(const TopicPartition& partition);
  void rebalance(Group& group);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, int> topics_;
  std::map<std::string, std::string> topic_ids_;
  int topics_made_ = 0;
  std::map<TopicPartition, Log> logs_;
  std::map<std::string, Group> groups_;
  std::set<class MemoryProducer*> producers_;
  Bytes fetched_bytes_ = 0;
  std::size_t refusals_ = 0;
};

}  // namespace weir::client
