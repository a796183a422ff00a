// librdkafka as a ConsumerTransport.
//
// Every assigned partition keeps a queue of its own that is not forwarded: leaving it unread holds the partition behind
// its prefetch limit, without pause(), which would throw the prefetch away. Group events come through `main_`, served
// by serve().
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <shared_mutex>

#include "base/clock.h"
#include "client/admin.h"
#include "client/assigned.h"
#include "client/kafka_settings.h"
#include "client/rdkafka_common.h"
#include "client/transport.h"

namespace weir::client {
namespace {

constexpr Duration kNudge = std::chrono::milliseconds(2);  // between two
constexpr MonoTime kNever = MonoTime{} - std::chrono::hours(1);
constexpr Duration kOwnFence = std::chrono::seconds(30);  // after the session timed out; commits are answered by then

RdList make_list(const std::vector<TopicPartition>& partitions, std::int64_t offset = RD_KAFKA_OFFSET_INVALID) {
  RdList list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto& one : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), one.topic.c_str(), one.partition.value)->offset = offset;
  }
  return list;
}

std::vector<TopicPartition> partitions_of(const rd_kafka_topic_partition_list_t& list) {
  std::vector<TopicPartition> partitions;
  for (int i = 0; i < list.cnt; ++i) partitions.push_back({list.elems[i].topic, PartitionId(list.elems[i].partition)});
  return partitions;
}

Error error_of(rd_kafka_resp_err_t code, std::string_view what) {
  return {ErrorKind::kUnavailable, fmt::format("{}: {}", what, rd_kafka_err2str(code))};
}

ConsumedRecord record_of(const rd_kafka_message_t& message, const TopicPartition& partition) {
  ConsumedRecord record{partition, Offset(message.offset)};
  rd_kafka_timestamp_type_t type;
  record.timestamp = from_unix_ms(rd_kafka_message_timestamp(&message, &type));
  record.log_append_time = type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
  if (message.key != nullptr) record.key.emplace(static_cast<const char*>(message.key), message.key_len);
  if (message.payload != nullptr) record.value.emplace(static_cast<const char*>(message.payload), message.len);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      Header header{name, std::nullopt};
      if (value != nullptr) header.value.emplace(static_cast<const char*>(value), size);
      record.headers.push_back(std::move(header));
    }
  }
  return record;
}

class RdConsumer final : public ConsumerTransport {
 public:
  RdConsumer(const ConsumerSettings& settings, Wake wake)
      : settings_(settings), wake_(std::move(wake)), log_(settings.client_id) {}

  ~RdConsumer() override {
    drop_queues(partitions_);
    partitions_.clear();
    destroy_client();
  }

  Result<void> open() {
    auto conf = make_conf(library_settings(settings_));
    if (!conf) return tl::unexpected(conf.error());
    rd_kafka_conf_set_opaque(conf->get(), this);
    rd_kafka_conf_set_events(conf->get(),
                             RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR);
    rd_kafka_conf_set_log_cb(conf->get(),
                             [](const rd_kafka_t* client, int level, const char* facility, const char* text) {
                               if (std::string_view(facility) == "FAIL") return;  // comes as an error too
                               auto& self = *static_cast<RdConsumer*>(rd_kafka_opaque(client));
                               if (std::string_view(facility) == "SESSTMOUT")
                                 self.session_lost_at_ = system_clock().now().mono;
                               self.log_.line(level, facility, text);
                             });
    auto client = make_client(RD_KAFKA_CONSUMER, std::move(*conf));
    if (!client) return tl::unexpected(client.error());
    client_ = *client;
    username_ = value_in_force(client_, "sasl.username");
    password_ = value_in_force(client_, "sasl.password");
    rd_kafka_poll_set_consumer(client_);
    main_.reset(rd_kafka_queue_new(client_));
    RdQueue group(rd_kafka_queue_get_consumer(client_));
    rd_kafka_queue_forward(group.get(), main_.get());
    enable_wake(main_.get());

    RdList topics(rd_kafka_topic_partition_list_new(1));
    for (const auto& topic : settings_.topics)
      rd_kafka_topic_partition_list_add(topics.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
    if (const auto error = rd_kafka_subscribe(client_, topics.get()); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return fail(ErrorKind::kInvalid, fmt::format("cannot subscribe: {}", rd_kafka_err2str(error)));
    }
    return {};
  }

  void serve(std::vector<ConsumerEvent>& out) override {
    while (RdEvent event{rd_kafka_queue_poll(main_.get(), 0)}) {
      switch (rd_kafka_event_type(event.get())) {
        case RD_KAFKA_EVENT_REBALANCE: rebalance(event.get(), out); break;
        case RD_KAFKA_EVENT_OFFSET_COMMIT: committed(event.get(), out); break;
        case RD_KAFKA_EVENT_ERROR: trouble(event.get(), out); break;
        case RD_KAFKA_EVENT_FETCH: stray(event.get()); break;
        default: break;
      }
    }
    look_for_fatal_error(out);
    for (const auto& partition : std::exchange(seek_again_, {})) {
      if (auto part = find(partition); part && part->seek_to) carry_out_seek(partition, *part);
    }
    std::lock_guard lock(events_mutex_);
    for (auto& event : events_) out.push_back(std::move(event));
    events_.clear();
  }

  Result<std::vector<AssignedPartition>> look_up(const std::vector<TopicPartition>& partitions,
                                                 Duration wait) override {
    const MonoTime until = system_clock().now().mono + wait;
    auto left = [&] {
      return std::max(
          1, static_cast<int>(
                 std::chrono::duration_cast<std::chrono::milliseconds>(until - system_clock().now().mono).count()));
    };
    RdList committed = make_list(partitions);
    if (auto e = rd_kafka_committed(client_, committed.get(), left()))
      return tl::unexpected(error_of(e, "committed offsets"));
    auto ends = ends_of(partitions, left() / 2);
    const bool together = std::any_of(ends.begin(), ends.end(), [](const auto& one) { return !one.error; });
    std::vector<AssignedPartition> found;
    for (std::size_t i = 0; i < partitions.size(); ++i) {
      if (!together) ends[i] = ends_of({partitions[i]}, left() / static_cast<int>(partitions.size() - i)).front();
      const auto& next = committed->elems[i];  // in the order of the question
      if (const auto e = next.err ? next.err : ends[i].error) {
        log_.line(4, "OFFSETS", fmt::format("{} is not read yet: {}", name_of(partitions[i]), rd_kafka_err2str(e)));
        continue;
      }
      auto known = [](std::int64_t offset) { return offset < 0 ? std::nullopt : std::optional(Offset(offset)); };
      found.push_back({partitions[i], known(next.offset), known(ends[i].first), known(ends[i].end)});
    }
    return found;
  }

  void start(const std::vector<StartAt>& partitions) override {
    auto given = std::exchange(to_answer_, std::nullopt);
    if (!given) {
      for (const auto& one : partitions) seek(one.partition, one.offset);
      return;
    }
    // The library takes an assignment whole. What is to start later is put at the end of its log and sought from there.
    RdList list = make_list(*given, RD_KAFKA_OFFSET_END);
    for (const auto& one : partitions) {
      const auto& [topic, partition] = one.partition;
      if (auto* to = rd_kafka_topic_partition_list_find(list.get(), topic.c_str(), partition.value))
        to->offset = one.offset.value;
    }
    for (auto& partition : *given) {
      auto part = std::make_shared<Partition>();
      part->in_place = std::any_of(partitions.begin(), partitions.end(),
                                   [&](const auto& one) { return one.partition == partition; });
      // Cut off before fetching begins, so nothing of it comes through the main queue.
      part->queue.reset(rd_kafka_queue_get_partition(client_, partition.topic.c_str(), partition.partition.value));
      if (part->queue) {
        rd_kafka_queue_forward(part->queue.get(), nullptr);
        enable_wake(part->queue.get());
      }
      std::unique_lock lock(partitions_mutex_);
      partitions_[std::move(partition)] = std::move(part);
    }
    const Bytes ahead = partitions_.size() * prefetch_bytes(settings_);
    if (const Bytes planned = settings_.buffer_memory / 4; ahead > planned) {
      log_.line(4, "PREFETCH",
                fmt::format("{} partitions may be read ahead by {} KiB in all, {} KiB more than the quarter of "
                            "buffer.memory that is meant for it; more members of the group would share them",
                            partitions_.size(), ahead / kKiB, (ahead - planned) / kKiB));
    }
    if (cooperative()) {
      check(rd_kafka_incremental_assign(client_, list.get()));
    } else if (auto e = rd_kafka_assign(client_, list.get())) {
      log_.line(4, "ASSIGN", rd_kafka_err2str(e));
    }
    wake_();
  }

  void stop(const std::vector<TopicPartition>& partitions) override {
    std::map<TopicPartition, std::shared_ptr<Partition>> gone;
    {
      std::unique_lock lock(partitions_mutex_);
      for (const auto& partition : partitions) {
        if (auto node = partitions_.extract(partition)) gone.insert(std::move(node));
      }
    }
    drop_queues(gone);
    if (reopening_) return reopen();
    if (cooperative() && !rd_kafka_assignment_lost(client_)) {
      check(rd_kafka_incremental_unassign(client_, make_list(partitions).get()));
    } else {
      rd_kafka_assign(client_, nullptr);
    }
  }

  void seek(const TopicPartition& partition, Offset offset) override {
    auto part = find(partition);
    if (!part) return;
    {
      std::lock_guard lock(part->mutex);
      part->in_place = false;
    }
    part->seek_to = offset;
    carry_out_seek(partition, *part);
  }

  void read(const TopicPartition& partition, std::size_t max, std::vector<ConsumedRecord>& out) override {
    auto part = find(partition);
    if (!part) return;
    std::lock_guard lock(part->mutex);
    if (!part->queue || !part->in_place) return;
    max = std::min<std::size_t>(max, 1024);
    std::vector<rd_kafka_message_t*> messages(max);
    const ssize_t count = rd_kafka_consume_batch_queue(part->queue.get(), 0, messages.data(), max);
    for (ssize_t i = 0; i < count; ++i) {
      rd_kafka_message_t* message = messages[static_cast<std::size_t>(i)];
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        out.push_back(record_of(*message, partition));
      } else {
        special(partition, *part, *message);
      }
      rd_kafka_message_destroy(message);
    }
    if (count > 0) part->read_since_nudge = true;
    nudge(*part, count <= 0);
  }

  std::optional<Offset> end_reached(const TopicPartition& partition) override {
    auto part = find(partition);
    if (!part) return std::nullopt;
    std::lock_guard lock(part->mutex);
    return part->in_place ? part->end : std::nullopt;
  }

  std::optional<Offset> log_end(const TopicPartition& partition) const override {
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (rd_kafka_get_watermark_offsets(client_, partition.topic.c_str(), partition.partition.value, &low, &high))
      return std::nullopt;
    if (high < 0) return std::nullopt;
    return Offset(high);
  }

  void commit(const std::map<TopicPartition, Offset>& next) override {
    RdList list(rd_kafka_topic_partition_list_new(static_cast<int>(next.size())));
    for (const auto& [partition, offset] : next) {
      rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.partition.value)->offset =
          offset.value;
    }
    const auto e = rd_kafka_commit_queue(client_, list.get(), main_.get(), nullptr, nullptr);
    if (e == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    ConsumerEvent event{ConsumerEvent::Kind::kCommitted};
    event.offsets = next;
    event.error = error_of(e, "commit");
    std::lock_guard lock(events_mutex_);
    events_.push_back(std::move(event));
  }

  void leave() override {
    leaving_ = true;
    check(rd_kafka_consumer_close_queue(client_, main_.get()));
  }
  bool left() const override { return leaving_ && rd_kafka_consumer_closed(client_) != 0; }

  std::vector<SettingInForce> in_force() const override { return settings_in_force(settings_, client_); }

 private:
  struct Partition {
    std::mutex mutex;
    RdQueue queue;
    bool read_since_nudge = false;
    std::optional<Offset> end;      // where the log ended when everything prefetched had been read
    bool in_place = true;           // false: to be sought first, what comes meanwhile is not to be read
    std::optional<Offset> seek_to;  // asked for and not done; of the thread that steps
  };

  struct Ends {
    rd_kafka_resp_err_t error;
    std::int64_t first;
    std::int64_t end;
  };
  // One leader that does not answer in time fails them all. (rd_kafka_query_watermark_offsets() waits a minute for it.)
  std::vector<Ends> ends_of(const std::vector<TopicPartition>& partitions, int wait_ms) {
    RdList first = make_list(partitions, RD_KAFKA_OFFSET_BEGINNING);
    RdList end = make_list(partitions, RD_KAFKA_OFFSET_END);
    const int each = std::max(1, wait_ms / 2);
    auto failed = rd_kafka_offsets_for_times(client_, first.get(), each);
    if (!failed) failed = rd_kafka_offsets_for_times(client_, end.get(), each);
    std::vector<Ends> found;
    for (int i = 0; i < first->cnt; ++i) {
      const auto& low = first->elems[i];
      const auto& high = end->elems[i];
      found.push_back({failed ? failed : low.err ? low.err : high.err, low.offset, high.offset});
    }
    return found;
  }

  void enable_wake(rd_kafka_queue_t* queue) {
    rd_kafka_queue_cb_event_enable(
        queue, [](rd_kafka_t*, void* self) { static_cast<RdConsumer*>(self)->wake_(); }, this);
  }
  // A broker thread that found every prefetch full sleeps up to a second, however soon they are read: about one
  // prefetch a second then. Setting the credentials to what they are is the one call that wakes it and changes nothing.
  // Done now and then while reading and, at the latest, when everything has been read. Any thread.
  void nudge(Partition& part, bool nothing_left) {
    if (!part.read_since_nudge) return;
    const MonoTime now = system_clock().now().mono;
    if (!nothing_left && now - nudged_at_.load() < kNudge) return;
    nudged_at_ = now;
    part.read_since_nudge = false;
    if (rd_kafka_error_t* error = rd_kafka_sasl_set_credentials(client_, username_.c_str(), password_.c_str())) {
      rd_kafka_error_destroy(error);
    }
  }
  // The library may be busy, or about to start the partition: then serve() tries again.
  void carry_out_seek(const TopicPartition& partition, Partition& part) {
    RdList list = make_list({partition}, part.seek_to->value);
    rd_kafka_error_t* error = rd_kafka_seek_partitions(client_, list.get(), 2000);
    if (error != nullptr || list->elems[0].err) {
      if (error == nullptr) log_.line(4, "SEEK", rd_kafka_err2str(list->elems[0].err));
      check(error);
      seek_again_.push_back(partition);
      return;
    }
    part.seek_to.reset();
    std::lock_guard lock(part.mutex);
    part.in_place = true;
    part.end.reset();
  }
  // Waits for who reads one.
  static void drop_queues(const std::map<TopicPartition, std::shared_ptr<Partition>>& partitions) {
    for (const auto& [name, part] : partitions) {
      std::lock_guard lock(part->mutex);
      if (part->queue) rd_kafka_queue_cb_event_enable(part->queue.get(), nullptr, nullptr);
      part->queue.reset();
    }
  }
  // The group was left before, or there was no time for it: either way this must not wait for a coordinator.
  void destroy_client() {
    if (client_ == nullptr) return;
    if (main_) rd_kafka_queue_cb_event_enable(main_.get(), nullptr, nullptr);
    main_.reset();
    rd_kafka_destroy_flags(std::exchange(client_, nullptr), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
  // Nothing is assigned.
  void reopen() {
    reopening_ = fatal_told_ = false;
    session_lost_at_ = kNever;
    to_answer_.reset();
    seek_again_.clear();
    destroy_client();
    if (auto opened = open(); !opened) {
      std::lock_guard lock(events_mutex_);
      events_.push_back({.kind = ConsumerEvent::Kind::kFatal, .error = opened.error()});
    }
    wake_();
  }
  bool cooperative() const {
    const char* protocol = rd_kafka_rebalance_protocol(client_);
    return protocol != nullptr && std::string_view(protocol) == "COOPERATIVE";
  }
  void check(rd_kafka_error_t* error) {
    if (error == nullptr) return;
    log_.line(4, rd_kafka_error_name(error), rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
  }
  std::shared_ptr<Partition> find(const TopicPartition& partition) const {
    std::shared_lock lock(partitions_mutex_);
    auto at = partitions_.find(partition);
    return at == partitions_.end() ? nullptr : at->second;
  }

  // What comes in a partition's queue besides records. With part.mutex.
  void special(const TopicPartition& partition, Partition& part, const rd_kafka_message_t& message) {
    switch (message.err) {
      case RD_KAFKA_RESP_ERR__PARTITION_EOF: part.end = Offset(message.offset); return;
      case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE: {
        ConsumerEvent event{ConsumerEvent::Kind::kOutOfRange};
        event.partition = partition;
        {
          std::lock_guard lock(events_mutex_);
          events_.push_back(std::move(event));
        }
        wake_();
        return;
      }
      default: {
        const char* what = message.err == RD_KAFKA_RESP_ERR__BAD_MSG ? " is damaged and not read on" : "";
        log_.error(message.err, fmt::format("{}{}: {}", name_of(partition), what, rd_kafka_message_errstr(&message)));
      }
    }
  }

  void rebalance(rd_kafka_event_t* event, std::vector<ConsumerEvent>& out) {
    auto partitions = partitions_of(*rd_kafka_event_topic_partition_list(event));
    if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
      to_answer_ = partitions;
      out.push_back({ConsumerEvent::Kind::kAssign, std::move(partitions)});
    } else {
      const bool lost = rd_kafka_assignment_lost(client_) != 0;
      out.push_back({lost ? ConsumerEvent::Kind::kLost : ConsumerEvent::Kind::kRevoke, std::move(partitions)});
    }
  }

  void committed(rd_kafka_event_t* event, std::vector<ConsumerEvent>& out) {
    ConsumerEvent done{ConsumerEvent::Kind::kCommitted};
    auto code = rd_kafka_event_error(event);
    if (const auto* list = rd_kafka_event_topic_partition_list(event)) {
      for (int i = 0; i < list->cnt; ++i) {
        done.offsets[{list->elems[i].topic, PartitionId(list->elems[i].partition)}] = Offset(list->elems[i].offset);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = list->elems[i].err;
      }
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) done.error = error_of(code, "commit");
    out.push_back(std::move(done));
  }

  void trouble(rd_kafka_event_t* event, std::vector<ConsumerEvent>& out) {
    const auto code = rd_kafka_event_error(event);
    if (code != RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT) {
      log_.error(code, rd_kafka_event_error_string(event));
      return;
    }
    // The library would ask for ever.
    ConsumerEvent fatal{ConsumerEvent::Kind::kFatal};
    fatal.error = Error{ErrorKind::kInvalid,
                        fmt::format("session.timeout.ms: {} takes {}, and this is {}", settings_.bootstrap_servers,
                                    session_timeouts_taken(), ms_text(settings_.session_timeout))};
    out.push_back(std::move(fatal));
  }

  // Waits for a broker, three seconds at most.
  std::string session_timeouts_taken() const {
    constexpr auto kLow = "group.min.session.timeout.ms";
    constexpr auto kHigh = "group.max.session.timeout.ms";
    Admin admin({.bootstrap = settings_.bootstrap_servers,
                 .client_id = settings_.client_id,
                 .timeout = std::chrono::milliseconds(1500)});
    if (const auto cluster = admin.cluster(); cluster && !cluster->brokers.empty()) {
      if (const auto configs = admin.broker_configs(cluster->brokers.front().id)) {
        const auto low = configs->find(kLow);
        const auto high = configs->find(kHigh);
        if (low != configs->end() && high != configs->end() && low->second.value && high->second.value)
          return fmt::format("{} to {} ({}, {})", *low->second.value, *high->second.value, kLow, kHigh);
      }
    }
    return fmt::format("what is from its {} to its {}", kLow, kHigh);
  }

  // The library reports it now as an event, now as a message of some queue: asking for it is the one way that always
  // works.
  void look_for_fatal_error(std::vector<ConsumerEvent>& out) {
    char why[256];
    const auto code = rd_kafka_fatal_error(client_, why, sizeof why);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || std::exchange(fatal_told_, true)) return;
    if (code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID && !leaving_ &&
        system_clock().now().mono - session_lost_at_.load() < kOwnFence) {
      // Nobody else: the library joined anew after an outage, under a new member id, and a commit from before it came
      // after that. It gives up for good then, so begin with a new one once what is assigned has been given up.
      reopening_ = true;
      std::vector<TopicPartition> all;
      std::shared_lock lock(partitions_mutex_);
      for (const auto& [partition, part] : partitions_) all.push_back(partition);
      out.push_back({ConsumerEvent::Kind::kLost, std::move(all)});
      return;
    }
    ConsumerEvent fatal{ConsumerEvent::Kind::kFatal};
    fatal.error =
        Error{ErrorKind::kClosed,
              code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID
                  ? fmt::format("another member of group {} has taken over group.instance.id {}; give each its own",
                                settings_.group_id, settings_.group_instance_id)
                  : fmt::format("group {}: {}", settings_.group_id, why)};
    out.push_back(std::move(fatal));
  }

  // A message in the main queue: its partition's queue was forwarded for a moment. It must not be lost.
  void stray(rd_kafka_event_t* event) {
    const rd_kafka_message_t* message = rd_kafka_event_message_next(event);
    if (message == nullptr || message->rkt == nullptr) return;
    const TopicPartition partition{rd_kafka_topic_name(message->rkt), PartitionId(message->partition)};
    if (auto part = find(partition); part && part->queue) {
      rd_kafka_queue_forward(part->queue.get(), nullptr);
      bool in_place = false;
      {
        std::lock_guard lock(part->mutex);
        in_place = part->in_place;
      }
      if (in_place) seek(partition, Offset(message->offset));
    }
  }

  const ConsumerSettings settings_;
  const Wake wake_;
  RdLog log_;
  rd_kafka_t* client_ = nullptr;
  bool fatal_told_ = false;
  bool reopening_ = false;  // the next stop() makes a new client
  std::atomic<MonoTime> session_lost_at_{kNever};
  RdQueue main_;
  std::string username_;
  std::string password_;
  std::atomic<MonoTime> nudged_at_{MonoTime{}};
  bool leaving_ = false;
  std::optional<std::vector<TopicPartition>> to_answer_;  // the assignment that start() answers
  std::vector<TopicPartition> seek_again_;

  mutable std::shared_mutex partitions_mutex_;
  std::map<TopicPartition, std::shared_ptr<Partition>> partitions_;
  std::mutex events_mutex_;
  std::vector<ConsumerEvent> events_;
};

}  // namespace

Result<std::unique_ptr<ConsumerTransport>> open_rdkafka_consumer(const ConsumerSettings& settings, Wake wake) {
  auto transport = std::make_unique<RdConsumer>(settings, std::move(wake));
  if (auto opened = transport->open(); !opened) return tl::unexpected(opened.error());
  return transport;
}

}  // namespace weir::client
