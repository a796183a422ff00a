// A guarded Kafka producer: bounded memory, rate limits, lanes, a window over what the consumer has not read yet.
//
//   send() -> lanes -> gate (pause, directives, rates, windows) -> Kafka client -> broker -> acknowledgement ->
//   callback
//             '------------------- every byte in here is charged to buffer.memory --------------------------------'
//
// Threads: every function may be called from any thread. One thread of ours moves records and runs the callbacks, so an
// application that never polls wedges nothing. A callback must not block; it may call any function of the producer:
// send() never blocks there (a full buffer answers kFull) and close() only asks for the end. Order: kept inside a lane
// and partition. The producer is idempotent and never gives a record up or reorders by itself: an accepted record ends
// with exactly one callback.
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
  std::string value;   ///< in Kafka's plain units (ms, bytes)
  std::string source;  ///< "set", "default", or why it differs from what was asked
  auto operator<=>(const SettingInForce&) const = default;
};

/// Kafka-named settings keep Kafka's meaning. `kafka_settings` translates text in Java or librdkafka spelling into
/// these.
struct ProducerSettings {
  std::string bootstrap_servers = "127.0.0.1:9092";
  std::string client_id = "weir";

  // -- memory and what happens when it is used up
  Bytes buffer_memory =
      defaults::kBufferMemory;     ///< `buffer.memory`: all bytes from send() to the end of the callback; >= 1 MiB
  std::size_t buffer_records = 0;  ///< records held at most, callbacks included; 0: only memory counts
  WhenFull when_full = WhenFull::kBlock;     ///< kBlock or kReject; other policies belong to the agent
  Duration max_block = defaults::kMaxBlock;  ///< `max.block.ms`: longest wait of one send() in kBlock, then kFull

  // -- batches and acknowledgements
  Bytes batch_size = 64 * kKiB;                    ///< `batch.size`
  Duration linger = std::chrono::milliseconds(5);  ///< `linger.ms`
  std::string compression = "none";                ///< `compression.type`: none, gzip, snappy, lz4, zstd
  std::string acks = "all";                        ///< `acks`: all (-1), 1, 0. Only all is idempotent
  std::int32_t max_in_flight = 5;                  ///< `max.in.flight.requests.per.connection`: 1..5 with acks=all
  std::int32_t retries = 2147483647;  ///< `retries`: of the client; what it gives back is sent again, in order
  Duration retry_backoff = std::chrono::milliseconds(100);  ///< `retry.backoff.ms`
  Bytes max_request_size = 1'000'000;                       ///< `max.request.size`: a larger record is rejected at once

  // -- limits of our own
  double messages_per_second = 0;  ///< token bucket; 0: none
  double bytes_per_second = 0;     ///< token bucket over keys, values and headers; 0: none
  LaneWeights lane_weights = kDefaultLaneWeights;
  bool window = false;  ///< the end-to-end window: needs consumed() at least every fifth of lag_target
  Duration lag_target = defaults::kLagTarget;          ///< of the window
  std::int64_t window_floor = defaults::kWindowFloor;  ///< records
  /// Without any report of progress for this long, or for `lag_target` if that is longer, the progress cannot be
  /// measured: the window, which kept its size until then, lets everything pass until the next report, and
  /// `buffer.memory` is the bound. Not while no broker can be reached. Zero: never.
  Duration window_release_after = defaults::kDirectiveTtl;
  Duration ack_delay_target = Duration::zero();  ///< adaptive window on the delay of acks; zero: off
  std::optional<std::int64_t> max_lag;           ///< pause while the lag told by set_lag() is above this; empty: never
  Duration pause_sleep =
      std::chrono::seconds(1);  ///< how long one pause lasts before lag is looked at again (1 s or 500 ms)

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
std::string_view to_string(SendOutcome outcome);

struct SendResult {
  SendOutcome outcome = SendOutcome::kAccepted;
  /// For kRejected: a short stable word usable as a metric label ("too_large", "no_topic", "bad_partition").
  std::string_view reason = {};
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

  // Stage times on the monotonic clock: accepted <= handed over to the client <= acknowledged.
  MonoTime accepted_at{};
  MonoTime handed_at{};
  MonoTime acked_at{};
  bool cold = false;  ///< sent before the first acknowledgement ever: connect and metadata are in its time
};
using OnDelivery = std::function<void(Delivery&)>;

/// What the producer is doing, for people and metrics.
enum class ProducerState : std::uint8_t {
  kOpen,      ///< acknowledgements come
  kBlocked,   ///< no broker can be reached, or acknowledgements stopped; records wait
  kDraining,  ///< reached again; working off what waited
  kClosed,
};
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
  std::size_t in_flight = 0;   ///< handed to the client, not acknowledged
  std::size_t unreported = 0;  ///< acknowledged, callback not finished
  std::array<std::size_t, kLanes> waiting_by_lane{};

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

class Producer {
 public:
  /// Connects in the background: succeeds without a broker. Fails on settings the client library refuses.
  static Result<std::unique_ptr<Producer>> open(const ProducerSettings& settings);
  /// Around a core built by hand (tests): `threaded` false starts no thread, the test drives the core.
  Producer(std::shared_ptr<ProducerCore> core, bool threaded);
  /// close() with a deadline of zero when it was not called.
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// Takes the record, or says why not. On kAccepted `record` is moved from; otherwise it is left as it was.
  /// Waits only in kBlock, at most `max_block`, and never inside a callback. `on_delivery` may be empty.
  SendResult send(Record& record, OnDelivery on_delivery = {});
  SendResult send(Record&& record, OnDelivery on_delivery = {}) { return send(record, std::move(on_delivery)); }
  /// The same with a wait of the caller's own; zero never waits.
  SendResult send(Record& record, Duration max_wait, OnDelivery on_delivery);

  /// Tells the window that everything before `next` has been consumed. For applications that hold both ends, and for
  /// the agent, which reads the group's committed offsets. Call it at least every fifth of `lag_target`, also when
  /// nothing moved: silence means that the progress is not known (see `window_release_after`).
  void consumed(const TopicPartition& partition, Offset next);
  /// The same for several partitions in one report. Empty: progress is known, and there is none yet.
  void consumed(const std::map<TopicPartition, Offset>& next);
  /// The measured lag of whoever reads this, in records; empty: unknown, which after `pause_sleep` releases the pause.
  void set_lag(std::optional<std::int64_t> records);
  /// Follows a directive until it expires. One for the same scope replaces the former; one that has expired takes it
  /// back.
  void apply(const Directive& directive);

  /// Sends what lingers and waits until everything accepted before the call has been reported, or `deadline` has
  /// passed. Returns how many records are left. Inside a callback it returns at once.
  std::size_t flush(Duration deadline);
  /// Accepts nothing more, flushes, then ends what is left as kUndelivered (each gets its callback). Returns how many
  /// those were. Returns within the deadline plus a little, whatever the broker or the callbacks do. A second call
  /// returns 0.
  std::size_t close(Duration deadline);

  ProducerStats stats() const;
  std::vector<SettingInForce> in_force() const;

 private:
  std::shared_ptr<ProducerCore> core_;  // shared with our thread: a stuck callback must not hang the owner
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir
