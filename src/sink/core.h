// What the sink is without its thread: records pending per partition, what may go into the next transaction, what
// follows from its outcome. A thread, or a test in virtual time, steps it.
//
//   poll -> parse -> pending(partition) = [ready | dead letter on its way | dead letter acknowledged] ...
//   the topics are still the known ones -> the ready and acknowledged front of every partition, urgent ones first
//   -> store -> commit
//
// A partition whose front waits for the dead-letter topic, or for another try, stops there; the others go on.
//
// Threads: step() and finish_all() from one thread; on_assign() and on_revoke() from the consumer's; stats() and
// positions() from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "client/log_entry.h"
#include "flow/token_bucket.h"
#include "metrics/histogram.h"
#include "sink/dead_letters.h"
#include "sink/sink.h"
#include "sink/store.h"
#include "sink/topic_identity.h"
#include "weir/consumer.h"

namespace weir::sink {

class SinkCore {
 public:
  /// `store` and `clock` outlive the core; `known` are the store's positions. `ask` runs inside step() and
  /// check_topics().
  SinkCore(const SinkSettings& settings, Store& store, Positions known, AskTopicIds ask, const Clock& clock);

  /// For Consumer::open: seeks to what the store holds, refuses what contradicts it.
  ConsumerHooks hooks();
  /// Both outlive the core's steps. To be called once, before step().
  void attach(Consumer& consumer, Producer& dead_letters);
  /// The cluster must be the one the store's positions belong to; the first one is kept.
  Result<void> check_cluster(const std::string& id);
  /// The topics must be those the store's records come from; false, and failed(), when one was made anew.
  bool check_topics();

  /// Does what can be done now, waiting up to `wait` for records when there is nothing else to do.
  void step(Duration wait);
  /// From now on nothing more is polled.
  void stop_polling() { polling_ = false; }
  bool empty() const;
  /// Also records the latencies there, from now on.
  void expose(Registry& registry);

  SinkStats stats() const;
  Positions positions() const;
  /// Waits until `done` says so of the positions, the sink has failed, or `until` has passed.
  bool wait_positions(const std::function<bool(const Positions&)>& done, MonoTime until) const;
  void fail_for_good(Error error);
  std::optional<Error> failed() const;

 private:
  enum class State { kReady, kToDeadLetters, kAwaitingDeadLetters, kDeadLettered };
  struct Pending {
    ConsumedRecord record;
    client::LogEntry entry;
    bool parsed = false;
    std::optional<std::int64_t> source_pos;
    const std::string* source = nullptr;  // in record.headers
    State state = State::kReady;
    std::string reason;  // why it goes to the dead letters
    std::int32_t attempts = 0;
    MonoTime retry_at{};
    Duration refused_wait{};  // since the dead-letter topic last refused it
  };
  struct Queue {
    std::deque<Pending> pending;
    bool urgent = false;
  };
  using Queues = std::map<TopicPartition, Queue>;
  struct Batch {
    std::vector<Row> rows;
    std::vector<std::pair<Queues::iterator, std::size_t>> taken;  // queue, how many of its front
    Positions next;
    std::vector<Pending*> of_row;
  };

  Result<std::optional<Offset>> on_assign(const AssignedPartition& partition);
  void on_revoke(const std::vector<TopicPartition>& partitions);
  bool confirmed(Now now);
  bool confirm(Now now);
  void drop_revoked();
  void accept(Now now, std::vector<ConsumedRecord> records);
  void prepare(Pending& pending);
  void take_answers(Now now);
  void send_dead_letters(Now now);
  bool may_write(Now now);
  Batch next_batch(Now now);
  void add_oldest(bool urgent, std::size_t room, Now now, Batch& batch);
  static void add_front(Queues::iterator queue, std::size_t count, Batch& batch);
  static bool is_free(const Pending& pending, Now now);
  void write(Now now, Batch batch);
  void stored(const Batch& batch, const Written& written, Duration took);
  void refused(Now now, Pending& pending, const Error& why);
  void pass_hidden_records(Now now);
  Duration time_to_work(Now now) const;
  void publish(const Positions& next);
  template <typename Change>
  void count(Change change);

  const SinkSettings settings_;
  const std::set<std::string> urgent_topics_;
  Store& store_;
  const Clock& clock_;
  Consumer* consumer_ = nullptr;
  std::optional<DeadLetters> dead_letters_;
  client::LogEntryParser parser_;
  TopicIdentity identity_;

  Queues queues_;
  std::size_t pending_ = 0;
  std::optional<flow::TokenBucket> rate_;
  MonoTime store_retry_at_{};
  MonoTime dead_letters_retry_at_{};
  MonoTime next_hidden_{};
  bool unconfirmed_ = false;  // something was fetched since the topics were last found to be the known ones
  MonoTime confirm_at_{};     // not tried before
  MonoTime next_look_{};
  log::Every topics_log_{std::chrono::seconds(30)};
  log::Every store_log_{std::chrono::seconds(30)};
  log::Every dead_letter_log_{std::chrono::seconds(30)};
  log::Every unparseable_log_{std::chrono::milliseconds(100)};
  log::Every refusal_log_{std::chrono::milliseconds(50)};
  std::atomic<bool> polling_{true};

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable moved_;
  Positions positions_;
  std::set<TopicPartition> revoked_;  // and not assigned again since: to be dropped
  SinkStats stats_;
  metrics::LatencyHistogram latency_;
  metrics::LatencyHistogram error_latency_;
  LatencyMetric* store_seconds_ = nullptr;
  std::map<std::string, LatencyMetric*> latency_by_topic_;
};

}  // namespace weir::sink
