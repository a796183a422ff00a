// The sink: reads LogEntry records from Kafka and puts them into a store, each once, errors first.
//
//   consumer -> pending, per partition -> one transaction {rows, offsets} -> commit to Kafka
//                    '-> cannot be parsed, or refused by the store: dead-letter topic, acknowledged there, then passed
//
// What the store holds decides where reading starts; Kafka's committed offsets only tell others how far it is. One
// thread of ours does the work; every function may be called from any thread.
//   fetched = stored + duplicates + dead_lettered + in_memory + skipped
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/consumer.h"
#include "weir/flow.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::sink {

/// The consumer a sink uses unless told otherwise: errors first, and a static member, so that a restart takes over at
/// once instead of waiting for the session to end.
inline ConsumerSettings default_consumer() {
  ConsumerSettings consumer;
  consumer.client_id = "weir-sink";
  consumer.group_id = "weir-sink";
  consumer.group_instance_id = "weir-sink";
  consumer.topics = {"logs_error", "logs"};
  consumer.first_topics = {"logs_error"};
  return consumer;
}

struct SinkSettings {
  /// Where and how to read; `first_topics` are also stored before the others, and their latency is error_latency.
  ConsumerSettings consumer = default_consumer();
  std::string dead_letter_topic = "logs_dead_letter";
  /// Topics that are missing are made with so many partitions; 0: they are not made.
  std::int32_t partitions = 16;
  std::int32_t dead_letter_partitions = 8;

  std::filesystem::path database = "logs.db";  ///< SQLite file; made when missing. Its directory must exist
  double records_per_second = 0;               ///< `--sink-rate`: slows the store; 0: as fast as it goes
  std::size_t max_transaction = 2000;          ///< records of one transaction at most
  /// A record the store refuses is tried this often, with `backoff` between, before it goes to the dead-letter topic.
  /// One that cannot be parsed goes there at the first try: it would not parse the second time.
  std::int32_t attempts = 3;
  Duration backoff = std::chrono::milliseconds(100);
  /// Longest time between two commits to Kafka while anything moves.
  Duration commit_interval = std::chrono::milliseconds(200);
};

/// Whether a sink can work with these, before anything is opened or connected. The error begins with the name of a
/// setting, or has it in the words of the client library.
Result<void> check(const SinkSettings& settings);

struct SinkStats {
  std::uint64_t fetched = 0;
  std::uint64_t stored = 0;
  std::uint64_t duplicates = 0;                  ///< the store had (source, source_pos) already
  std::uint64_t dead_lettered = 0;               ///< acknowledged by the dead-letter topic
  std::uint64_t unparseable = 0;                 ///< of these; the others were refused by the store
  std::uint64_t in_memory = 0;                   ///< fetched and none of the others yet
  std::map<std::string, std::uint64_t> skipped;  ///< by reason: "revoked" (their new owner reads them)
  std::uint64_t expired = 0;                     ///< never fetched: deleted by retention before they were read
  std::uint64_t transactions = 0;
  std::uint64_t store_retries = 0;  ///< transactions that failed and were tried again (disk full, busy)
  LatencySummary latency;           ///< from the record's timestamp (its read time) to stored, since start
  LatencySummary error_latency;     ///< the same for `first_topics`
  /// Set once the sink has stopped by itself: one line that names what is wrong and the fix.
  std::optional<Error> failed;
};

class Store;
class SinkCore;

class Sink {
 public:
  /// Opens the store and starts; succeeds without a broker. Fails when the settings contradict each other, or the
  /// database cannot be opened or is in use. What only the client library refuses (see check()) ends the sink later.
  static Result<std::unique_ptr<Sink>> open(const SinkSettings& settings);
  /// stop() with a deadline of zero when it was not called.
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  /// Waits until the store has everything that was in the topics when this was called, at most `deadline`; returns what
  /// is left of it (as lag()), or why that cannot be told.
  Result<std::int64_t> drain(Duration deadline);
  /// Log ends minus the store's positions, over all partitions of the topics; what the sink holds is included.
  Result<std::int64_t> lag();
  /// Reads no more, stores and commits what it holds, leaves; all within the deadline. What was not stored is still in
  /// Kafka. A second call does nothing.
  void stop(Duration deadline);

  SinkStats stats() const;
  ConsumerStats consumer_stats() const;
  /// The consumer's settings as they are in force.
  std::vector<SettingInForce> in_force() const;
  /// Shows all this in `registry`, which must outlive the sink.
  void expose(Registry& registry);
  /// The next offset the store needs, by partition.
  std::map<TopicPartition, Offset> positions() const;

 private:
  Sink() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::sink
