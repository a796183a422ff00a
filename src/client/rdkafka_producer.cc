// librdkafka as a ProducerTransport.
#include <atomic>
#include <map>
#include <optional>

#include "base/assert.h"
#include "base/clock.h"
#include "client/kafka_settings.h"
#include "client/rdkafka_common.h"
#include "client/transport.h"

namespace weir::client {

RdSettings library_settings(const ProducerSettings& s) {
  const bool idempotent = s.acks == "all";
  RdSettings list{
      {"bootstrap.servers", s.bootstrap_servers},
      {"client.id", s.client_id},
      {"enable.idempotence", idempotent ? "true" : "false"},
      {"acks", s.acks},
      {"max.in.flight.requests.per.connection", std::to_string(s.max_in_flight)},
      {"retries", std::to_string(s.retries)},
      {"retry.backoff.ms", ms_text(s.retry_backoff)},
      {"batch.size", std::to_string(s.batch_size)},
      {"linger.ms", ms_text(s.linger)},
      {"compression.type", s.compression},
      {"message.max.bytes", std::to_string(std::max<Bytes>(s.max_request_size, 1000))},
      // Never gives up by itself; memory is bounded by buffer.memory, long before these limits.
      {"message.timeout.ms", "0"},
      {"queue.buffering.max.messages", "10000000"},
      {"queue.buffering.max.kbytes", std::to_string(std::min<Bytes>(2 * s.buffer_memory / kKiB + 1024, 2147483647))},
      {"partitioner", "murmur2_random"},
      // A broker that comes back is found within a second.
      {"reconnect.backoff.ms", "50"},
      {"reconnect.backoff.max.ms", "500"},
      {"socket.nagle.disable", "true"},
      {"socket.keepalive.enable", "true"},
      {"statistics.interval.ms", "1000"},  // the only word there is of a broker that is back
  };
  // What follows a batch that is refused or given up must not be appended before its records are sent again: the
  // library then gives everything back instead of going on behind the gap.
  if (idempotent) list.emplace_back("enable.gapless.guarantee", "true");
  for (const auto& [name, value] : s.passed_through) {
    const auto codec = codec_of_level(name);
    if (codec.empty())
      list.emplace_back(name, value);
    else if (codec == s.compression)
      list.emplace_back("compression.level", value);
  }
  return list;
}

namespace {

using Handed = ProducerTransport::Handed;
using Hand = ProducerTransport::Hand;

/// A stable word for errors that trying again cannot help; empty for the others.
std::string_view permanent_reason(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE: return "too_large";
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION: return "bad_partition";
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: return "unknown_topic";
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION: return "bad_topic";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: return "not_authorized";
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR__INVALID_ARG: return "refused";
    default: return {};
  }
}

class RdProducer final : public ProducerTransport {
 public:
  RdProducer(const ProducerSettings& settings, Wake wake)
      : settings_(settings), wake_(std::move(wake)), log_(settings.client_id) {}
  ~RdProducer() override { destroy(); }

  Result<void> reopen() override {
    destroy();
    auto conf = make_conf(library_settings(settings_));
    if (!conf) return tl::unexpected(conf.error());
    rd_kafka_conf_set_opaque(conf->get(), this);
    rd_kafka_conf_set_dr_msg_cb(conf->get(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
      static_cast<RdProducer*>(self)->report(*message);
    });
    rd_kafka_conf_set_error_cb(conf->get(), [](rd_kafka_t*, int error, const char* reason, void* self) {
      static_cast<RdProducer*>(self)->trouble(static_cast<rd_kafka_resp_err_t>(error), reason);
    });
    rd_kafka_conf_set_stats_cb(conf->get(), [](rd_kafka_t*, char* json, std::size_t size, void* self) {
      if (std::string_view(json, size).find(R"("state":"UP")") != std::string_view::npos)
        static_cast<RdProducer*>(self)->down_ = false;
      return 0;
    });
    rd_kafka_conf_set_throttle_cb(conf->get(), [](rd_kafka_t*, const char*, int32_t, int milliseconds, void* self) {
      static_cast<RdProducer*>(self)->throttle_ = std::chrono::milliseconds(milliseconds);
    });
    rd_kafka_conf_set_log_cb(conf->get(),
                             [](const rd_kafka_t* client, int level, const char* facility, const char* text) {
                               if (std::string_view(facility) == "FAIL") return;  // comes as an error too
                               static_cast<RdProducer*>(rd_kafka_opaque(client))->log_.line(level, facility, text);
                             });
    auto client = make_client(RD_KAFKA_PRODUCER, std::move(*conf));
    if (!client) return tl::unexpected(client.error());
    client_ = *client;
    broken_ = false;
    giving_back_since_.reset();
    queue_.reset(rd_kafka_queue_get_main(client_));
    rd_kafka_queue_cb_event_enable(
        queue_.get(), [](rd_kafka_t*, void* self) { static_cast<RdProducer*>(self)->wake_(); }, this);
    return {};
  }

  Handed hand_over(const Record& record, WallTime timestamp, void* token) override {
    if (client_ == nullptr || broken_) return {Hand::kBroken, "fatal", "the Kafka client cannot go on"};
    rd_kafka_topic_t* topic = topic_of(record.topic);
    if (topic == nullptr) return {Hand::kPermanent, "bad_topic", "not a topic name"};
    std::vector<rd_kafka_vu_t>& parts = parts_;
    parts.clear();
    auto add = [&](rd_kafka_vtype_t type) -> rd_kafka_vu_t& {
      parts.emplace_back();
      parts.back().vtype = type;
      return parts.back();
    };
    add(RD_KAFKA_VTYPE_RKT).u.rkt = topic;
    add(RD_KAFKA_VTYPE_PARTITION).u.i32 = record.partition ? record.partition->value : RD_KAFKA_PARTITION_UA;
    add(RD_KAFKA_VTYPE_OPAQUE).u.ptr = token;
    add(RD_KAFKA_VTYPE_TIMESTAMP).u.i64 = to_unix_ms(timestamp);
    if (record.key) {
      auto& part = add(RD_KAFKA_VTYPE_KEY);
      part.u.mem.ptr = const_cast<char*>(record.key->data());
      part.u.mem.size = record.key->size();
    }
    if (record.value) {
      // Not copied: the core keeps the record until its report.
      auto& part = add(RD_KAFKA_VTYPE_VALUE);
      part.u.mem.ptr = const_cast<char*>(record.value->data());
      part.u.mem.size = record.value->size();
    }
    for (const auto& header : record.headers) {
      auto& part = add(RD_KAFKA_VTYPE_HEADER);
      part.u.header.name = header.name.c_str();
      part.u.header.val = header.value ? header.value->data() : nullptr;
      part.u.header.size = header.value ? static_cast<ssize_t>(header.value->size()) : -1;
    }
    rd_kafka_error_t* error = rd_kafka_produceva(client_, parts.data(), parts.size());
    if (error == nullptr) {
      ++outstanding_;
      return {};
    }
    const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    std::string detail = rd_kafka_error_string(error);
    rd_kafka_error_destroy(error);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) return {Hand::kFull, "full", std::move(detail)};
    const auto reason = permanent_reason(code);
    if (!reason.empty()) return {Hand::kPermanent, reason, std::move(detail)};
    broken_ = true;
    return {Hand::kBroken, "fatal", std::move(detail)};
  }

  void collect(std::vector<Report>& out) override {
    if (client_ == nullptr) return;
    rd_kafka_poll(client_, 0);
    out.insert(out.end(), std::make_move_iterator(reports_.begin()), std::make_move_iterator(reports_.end()));
    reports_.clear();
  }

  void push(Duration wait) override {
    if (client_ != nullptr)
      rd_kafka_flush(client_, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(wait).count()));
  }

  void give_back(Duration patience) override {
    if (client_ == nullptr) return;
    const MonoTime now = system_clock().now().mono;
    if (!giving_back_since_) giving_back_since_ = now;
    const bool all = now - *giving_back_since_ >= patience;
    rd_kafka_purge(client_,
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING | (all ? RD_KAFKA_PURGE_F_INFLIGHT : 0));
    broken_ = true;
  }

  bool down() const override { return down_; }
  Duration throttle() const override { return throttle_; }

  std::vector<SettingInForce> in_force() const override {
    const ProducerSettings standard;
    std::vector<SettingInForce> list;
    auto ours = [&](std::string name, const std::string& value, bool is_default) {
      list.push_back({std::move(name), value, is_default ? "default" : "set"});
    };
    auto theirs = [&](const std::string& name, const std::string& library_name, bool is_default) {
      ours(name, value_in_force(client_, library_name), is_default);
    };
    const auto& s = settings_;
    ours("buffer.memory", std::to_string(s.buffer_memory), s.buffer_memory == standard.buffer_memory);
    ours("max.block.ms", ms_text(s.max_block), s.max_block == standard.max_block);
    theirs("bootstrap.servers", "bootstrap.servers", s.bootstrap_servers == standard.bootstrap_servers);
    theirs("client.id", "client.id", s.client_id == standard.client_id);
    theirs("batch.size", "batch.size", s.batch_size == standard.batch_size);
    theirs("linger.ms", "linger.ms", s.linger == standard.linger);
    theirs("compression.type", "compression.type", s.compression == standard.compression);
    list.push_back({"acks", value_in_force(client_, "acks") == "-1" ? "all" : value_in_force(client_, "acks"),
                    s.acks == standard.acks ? "default" : "set"});
    theirs("max.in.flight.requests.per.connection", "max.in.flight.requests.per.connection",
           s.max_in_flight == standard.max_in_flight);
    theirs("retries", "retries", s.retries == standard.retries);
    theirs("retry.backoff.ms", "retry.backoff.ms", s.retry_backoff == standard.retry_backoff);
    theirs("max.request.size", "message.max.bytes", s.max_request_size == standard.max_request_size);
    list.push_back({"enable.idempotence", value_in_force(client_, "enable.idempotence"), "on with acks=all"});
    list.push_back({"delivery.timeout.ms", value_in_force(client_, "message.timeout.ms"),
                    "0: an accepted record is never given up"});
    for (const auto& [name, value] : s.passed_through) {
      const auto codec = codec_of_level(name);
      list.push_back(
          {name, is_secret(name) ? "(hidden)" : value,
           codec.empty() || codec == s.compression ? "set" : "unused: compression.type is " + s.compression});
    }
    return list;
  }

 private:
  rd_kafka_topic_t* topic_of(const std::string& name) {
    auto& topic = topics_[name];
    if (!topic) topic.reset(rd_kafka_topic_new(client_, name.c_str(), nullptr));
    return topic.get();
  }

  void report(const rd_kafka_message_t& message) {
    Report report;
    report.token = message._private;
    WEIR_ASSERT(outstanding_ > 0);
    --outstanding_;
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      report.partition = PartitionId(message.partition);
      report.offset = Offset(message.offset >= 0 ? message.offset : -1);
      down_ = false;
    } else {
      report.reason = permanent_reason(message.err);
      report.kind = report.reason.empty() ? Report::Kind::kGivenBack : Report::Kind::kPermanent;
      report.detail = rd_kafka_err2str(message.err);
    }
    reports_.push_back(std::move(report));
  }

  void trouble(rd_kafka_resp_err_t error, const char* reason) {
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
      down_ = true;
    } else if (error == RD_KAFKA_RESP_ERR__FATAL) {
      char why[256];
      rd_kafka_fatal_error(client_, why, sizeof why);
      broken_ = true;
      return log_.line(3, "FATAL", why);
    }
    log_.error(error, reason);
  }

  void destroy() {
    if (client_ == nullptr) return;
    rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
    queue_.reset();
    topics_.clear();
    rd_kafka_destroy(client_);
    client_ = nullptr;
  }

  const ProducerSettings settings_;
  const Wake wake_;
  RdLog log_;
  rd_kafka_t* client_ = nullptr;
  RdQueue queue_;
  std::map<std::string, RdTopic> topics_;
  std::vector<rd_kafka_vu_t> parts_;
  std::vector<Report> reports_;
  std::size_t outstanding_ = 0;
  bool broken_ = false;
  std::optional<MonoTime> giving_back_since_;
  bool down_ = false;
  Duration throttle_{};
};

}  // namespace

Result<std::unique_ptr<ProducerTransport>> open_rdkafka_producer(const ProducerSettings& settings, Wake wake) {
  auto transport = std::make_unique<RdProducer>(settings, std::move(wake));
  if (auto opened = transport->reopen(); !opened) return tl::unexpected(opened.error());
  return transport;
}

}  // namespace weir::client
