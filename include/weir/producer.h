// A guarded Kafka producer: bounded memory, rate limits, lanes, a window over what the consumer has not read yet.
//
//   send() -> lanes -> gate (pause, directives, rates, windows) -> Kafka client -> broker -> acknowledgement ->
//   callback
//             '------------------- every byte in here is charged to buffer.memory --------------------------------'
//
// Threads: every function may be called from any thread. One thread of ours moves records and runs the callbacks, so an
// application that never polls wedges nothing. A callback must not block; it may call any function of the producer:
// send() never blocks there (a full buffer answers kFull), flush() and close() only ask. Callbacks run one at a time;
// one may still come after close() returned, when the one before it, or the client library, was stuck.
//
// With acks=all the producer is idempotent, and the order is kept inside a lane and partition; a record that is refused
// and sent again (a batch too large in company, unless it is the partition's first) goes before what followed it. With
// acks 1 or 0 a resend may come twice or out of order. In both cases no record is given up before close(): an accepted
// record ends with exactly one callback. A broker that is away is waited for; when the client library itself must start
// anew, what was on its way is sent again; if the broker does not say within 5 s that it has it, it may be there twice.
//
// The laws are those of src/flow: token buckets, lanes by stride scheduling, the end-to-end window (Little's law over a
// maximum filter of the drain rate, as BBR has it), the adaptive window, the pause.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/flow.h"
#include "weir/record.h"
#include "weir/types.h"

namespace weir {

/// A setting as it is in force, for reading back.
struct SettingInForce {
  std::string name;    ///< Kafka's name (Java spelling where both exist)
  std::string value;   ///< in Kafka's plain units (ms, bytes); "(hidden)" when it may be a password, a key or a token
  std::string source;  ///< "set", "default", or why it differs from what was asked
  auto operator<=>(const SettingInForce&) const = default;
};

/// Kafka-named settings keep Kafka's meaning. `kafka_settings` translates text in Java or librdkafka spelling into
/// these. A value outside its range makes Producer::open() fail with one line that names the setting.
struct ProducerSettings {
  std::string bootstrap_servers = "127.0.0.1:9092";
  std::string client_id = "weir";

  // -- memory and what happens when it is used up
  /// `buffer.memory`, from 1 MiB: all bytes from send() to the end of the callback. A quarter is set aside for the
  /// client library's copies of what it sends, so "full" is when accepted records, bookkeeping included, fill three
  /// quarters.
  Bytes buffer_memory = defaults::kBufferMemory;
  std::size_t buffer_records = 0;         ///< records held at most, callbacks included; 0: only memory counts
  WhenFull when_full = WhenFull::kBlock;  ///< what send() does without room
  Duration max_block =
      defaults::kMaxBlock;  ///< `max.block.ms`, from 0: longest wait of one send() in kBlock, then kFull

  // -- batches and acknowledgements
  Bytes batch_size = 64 * kKiB;                    ///< `batch.size`, from 1
  Duration linger = std::chrono::milliseconds(5);  ///< `linger.ms`, from 0 to 900 s, in whole milliseconds
  std::string compression = "none";                ///< `compression.type`: none, gzip, snappy, lz4, zstd
  std::string acks = "all";                        ///< `acks`: all (-1), 1, 0. Only all is idempotent
  std::int32_t max_in_flight = 5;     ///< `max.in.flight.requests.per.connection`: 1 to 5 with acks=all, else from 1
  std::int32_t retries = 2147483647;  ///< `retries`, from 0: of the client; what it gives back is sent again, in order
  Duration retry_backoff = std::chrono::milliseconds(100);  ///< `retry.backoff.ms`, from 1 ms to 300 s
  /// `max.request.size`, from 1: a record whose key, value and headers are larger is rejected at once.
  Bytes max_request_size = 1'000'000;

  // -- limits of our own
  double messages_per_second = 0;                  ///< token bucket, a burst of one second; from 0, which means none
  double bytes_per_second = 0;                     ///< the same over keys, values and headers
  LaneWeights lane_weights = kDefaultLaneWeights;  ///< each from 1
  bool window = false;                             ///< the end-to-end window: needs consumed(), see there
  Duration lag_target = defaults::kLagTarget;      ///< of the window; above 0
  std::int64_t window_floor = defaults::kWindowFloor;  ///< records the window never goes below; from 1
  /// Without any report of progress for this long, or for `lag_target` if that is longer, the progress cannot be
  /// measured: the window, which kept its size until then, lets everything pass until the next report, and
  /// `buffer.memory` is the bound. Not while no broker can be reached. Zero: never.
  Duration window_release_after = defaults::kDirectiveTtl;
  Duration ack_delay_target = Duration::zero();  ///< adaptive window on the delay of acks; zero or less: off
  /// Pause while the lag told by set_lag() is above this many records, from 0; empty: never.
  std::optional<std::int64_t> max_lag;
  /// How long one pause lasts before the lag is looked at again; above 0 (the article has 1 s and 500 ms).
  Duration pause_sleep = std::chrono::seconds(1);

  /// Passed to the client library as they are (security settings and the like), librdkafka spelling.
  std::vector<std::pair<std::string, std::string>> passed_through = {};
};

/// What send() did with the record.
enum class SendOutcome : std::uint8_t {
  kAccepted,  ///< taken; its callback comes
  kFull,      ///< no room (now, or within max.block.ms); the caller keeps the record, no callback
  kClosed,    ///< the producer is closed, or was opened before a fork(); no callback
  kRejected,  ///< can never be sent; SendResult::reason says why; no callback
};
/// "accepted", "full", "closed" or "rejected".
std::string_view to_string(SendOutcome outcome);

/// The answer of send().
struct SendResult {
  SendOutcome outcome = SendOutcome::kAccepted;
  /// For kRejected: a short stable word usable as a metric label ("too_large", "no_topic", "bad_partition").
  std::string_view reason = {};
  /// True: the producer has the record now, and its callback comes.
  bool accepted() const { return outcome == SendOutcome::kAccepted; }
};

/// How an accepted record ended. Passed by reference for the time of the callback.
struct Delivery {
  enum class Status : std::uint8_t {
    kAcked,        ///< the broker has it, as `acks` says
    kRejected,     ///< permanent: trying again cannot help; `reason` and `detail` say why
    kUndelivered,  ///< close() passed its deadline first; the record may or may not be in the log
  };
  Status status = Status::kAcked;
  std::string_view reason = {};   ///< short stable word, as SendResult::reason; "closed" for kUndelivered
  std::string_view detail = {};   ///< for people
  TopicPartition partition = {};  ///< where it went (kAcked)
  Offset offset = kNoOffset;      ///< its offset (kAcked with acks 1 or all)
  Record& record;                 ///< may be moved from

  // Stage times on the monotonic clock: accepted <= handed over to the client (the last time) <= acknowledged. A time
  // that never came is the clock's zero.
  MonoTime accepted_at{};
  MonoTime handed_at{};
  MonoTime acked_at{};
  bool cold = false;  ///< sent before the first acknowledgement ever: connect and metadata are in its time
};
/// Called once for each accepted record, on the producer's thread. See the top for what it may do.
using OnDelivery = std::function<void(Delivery&)>;

/// What the producer is doing, for people and metrics.
enum class ProducerState : std::uint8_t {
  kOpen,      ///< acknowledgements come
  kBlocked,   ///< no broker can be reached, or acknowledgements stopped; records wait
  kDraining,  ///< reached again; working off what waited
  kClosed,    ///< closed, and every record reported
};
/// "open", "blocked", "draining" or "closed".
std::string_view to_string(ProducerState state);

/// Gauges never overlap: accepted = waiting + in_flight + unreported + done (acked + rejected + undelivered).
struct ProducerStats {
  std::uint64_t accepted = 0;
  std::uint64_t acked = 0;             ///< reported as acked
  std::uint64_t rejected = 0;          ///< reported as rejected (after acceptance)
  std::uint64_t undelivered = 0;       ///< reported as undelivered by close()
  std::uint64_t refused_full = 0;      ///< send() answered kFull
  std::uint64_t refused_rejected = 0;  ///< send() answered kRejected
  std::uint64_t resent = 0;            ///< handed to the client again after it gave them back

  std::size_t waiting = 0;  ///< accepted and not sent: in the lanes, or with the client while no broker can be reached
  std::size_t in_flight = 0;                          ///< handed to the client, not acknowledged
  std::size_t unreported = 0;                         ///< acknowledged, callback not finished
  std::array<std::size_t, kLanes> waiting_by_lane{};  ///< of `waiting`, what is still in the lanes

  Bytes buffer_bytes = 0;                      ///< charged to buffer.memory now
  Bytes peak_buffer_bytes = 0;                 ///< highest since open
  Duration blocked{};                          ///< summed time callers waited in send()
  Duration broker_throttle{};                  ///< the last delay the broker's quota asked for
  std::int64_t unconsumed = 0;                 ///< admitted and not yet consumed (with `window`)
  std::optional<std::int64_t> window_records;  ///< the end-to-end window in force
  /// Summed time with records refused and none admitted, by limit.
  std::array<Duration, kLimitedByCount> limited_for{};
  ProducerState state = ProducerState::kOpen;
  LimitState limit;  ///< the limit in force and why
};

class ProducerCore;

/// See the top of this file.
class Producer {
 public:
  /// Connects in the background: succeeds without a broker. Fails with kInvalid and one line that names the setting on
  /// a value out of its range and on what the client library refuses.
  static Result<std::unique_ptr<Producer>> open(const ProducerSettings& settings);
  /// Around a core built by hand (tests): `threaded` false starts no thread, the test drives the core.
  Producer(std::shared_ptr<ProducerCore> core, bool threaded);
  /// close() with a deadline of zero when it was not called.
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// Takes the record, or says why not. On kAccepted `record` is moved from; otherwise it is left as it was.
  /// Waits only in kBlock, at most `max_block`, and never inside a callback. `on_delivery` may be empty. A record
  /// without a timestamp gets the time of the call.
  SendResult send(Record& record, OnDelivery on_delivery = {});
  SendResult send(Record&& record, OnDelivery on_delivery = {}) { return send(record, std::move(on_delivery)); }
  /// The same with a wait of the caller's own; zero never waits.
  SendResult send(Record& record, Duration max_wait, OnDelivery on_delivery);

  /// Tells the window that everything before `next` has been consumed. For applications that hold both ends, and for
  /// the agent, which reads the group's committed offsets. Call it at least every fifth of `lag_target`, also when
  /// nothing moved: silence means that the progress is not known (see `window_release_after`). An offset below an
  /// earlier one of the same partition is ignored. Without `window` it does nothing.
  void consumed(const TopicPartition& partition, Offset next);
  /// The same for several partitions in one report. Empty: progress is known, and there is none yet.
  void consumed(const std::map<TopicPartition, Offset>& next);
  /// The topic was deleted, or made anew: what the window knows of its offsets holds no more. Without `window` it does
  /// nothing.
  void forget(const std::string& topic);
  /// The measured lag of whoever reads this, in records; empty: unknown, which after `pause_sleep` releases the pause.
  /// What was told is unknown again after 10 s. Without `max_lag` it does nothing.
  void set_lag(std::optional<std::int64_t> records);
  /// Follows a directive until it expires. One for the same scope replaces the former; one that has expired takes it
  /// back. Where several cover a record, each must let it pass. Renewing one grants no new burst.
  void apply(const Directive& directive);

  /// Sends what lingers and waits until everything accepted before the call has been reported, or `deadline` has
  /// passed. Returns how many of those are left. Inside a callback it returns at once; what lingers is sent all the
  /// same. Of several flushes at a time the last one's mark counts for all.
  std::size_t flush(Duration deadline);
  /// Accepts nothing more, flushes, then ends what is left as kUndelivered (each gets its callback). Returns how many
  /// those were. Returns within the deadline (24 h at most) plus 200 ms, whatever the broker or the callbacks do. Stuck
  /// in a callback, the producer cannot end what is left in time: those get their callbacks when it goes on, and may be
  /// missing from the number returned. Inside a callback it returns at once with what was undelivered so far. A second
  /// call returns 0 at once.
  std::size_t close(Duration deadline);

  /// A consistent copy; cheap enough for several calls a second. In a child of fork(): all zero.
  ProducerStats stats() const;
  /// What the client library and we really use, read back from it when it was opened, in Kafka's names.
  std::vector<SettingInForce> in_force() const;

 private:
  std::shared_ptr<ProducerCore> core_;  // shared with our thread: a stuck callback must not hang the owner
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir
