#include "client/raw.h"

#include <map>

#include "base/clock.h"
#include "client/rdkafka_common.h"

namespace weir::client {
namespace {

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

Result<RdConf> raw_conf(const RawSettings& settings, RdLog& log) {
  auto conf = make_conf(settings);
  if (!conf) return conf;
  rd_kafka_conf_set_opaque(conf->get(), &log);
  rd_kafka_conf_set_log_cb(conf->get(),
                           [](const rd_kafka_t* client, int level, const char* facility, const char* text) {
                             static_cast<RdLog*>(rd_kafka_opaque(client))->line(level, facility, text);
                           });
  return conf;
}

}  // namespace

// ---- Producing -----------------------------------------------------------------------------------------------------

struct RawProducer::State {
  RdLog log{"bench"};
  OnReport on_report;
  rd_kafka_t* client = nullptr;
  std::map<std::string, RdTopic> topics;
  int served = 0;
};

Result<std::unique_ptr<RawProducer>> RawProducer::open(const RawSettings& settings, OnReport on_report) {
  std::unique_ptr<RawProducer> producer(new RawProducer);
  producer->state_ = std::make_unique<State>();
  State& state = *producer->state_;
  state.on_report = std::move(on_report);
  auto conf = raw_conf(settings, state.log);
  if (!conf) return tl::unexpected(conf.error());
  rd_kafka_conf_set_dr_msg_cb(conf->get(), [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
    auto& self = *static_cast<State*>(message->_private);
    ++self.served;
    if (self.on_report) self.on_report(message->err ? rd_kafka_err2str(message->err) : "", Offset(message->offset));
  });
  auto client = make_client(RD_KAFKA_PRODUCER, std::move(*conf));
  if (!client) return tl::unexpected(client.error());
  state.client = *client;
  return producer;
}

RawProducer::~RawProducer() {
  if (!state_ || state_->client == nullptr) return;
  state_->topics.clear();
  rd_kafka_destroy(state_->client);
}

Result<bool> RawProducer::produce(const std::string& topic, std::string_view value, std::string_view key) {
  auto& handle = state_->topics[topic];
  if (!handle) handle.reset(rd_kafka_topic_new(state_->client, topic.c_str(), nullptr));
  if (!handle) return fail(ErrorKind::kInvalid, fmt::format("{} is not a topic name", topic));
  const int refused =
      rd_kafka_produce(handle.get(), RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, const_cast<char*>(value.data()),
                       value.size(), key.empty() ? nullptr : key.data(), key.size(), state_.get());
  if (refused == 0) return true;
  const auto error = rd_kafka_last_error();
  if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) return false;
  return fail(ErrorKind::kInvalid, rd_kafka_err2str(error));
}

int RawProducer::poll(Duration wait) {
  state_->served = 0;
  rd_kafka_poll(state_->client, milliseconds(wait));
  return state_->served;
}

std::size_t RawProducer::queue_length() const { return static_cast<std::size_t>(rd_kafka_outq_len(state_->client)); }

std::size_t RawProducer::flush(Duration deadline) {
  rd_kafka_flush(state_->client, milliseconds(deadline));
  return queue_length();
}

// ---- Consuming -----------------------------------------------------------------------------------------------------

struct RawConsumer::State {
  RdLog log{"bench"};
  rd_kafka_t* client = nullptr;
  rd_kafka_message_t* early = nullptr;  // came while waiting for the assignment
};

Result<std::unique_ptr<RawConsumer>> RawConsumer::open(const RawSettings& settings,
                                                       const std::vector<std::string>& topics) {
  std::unique_ptr<RawConsumer> consumer(new RawConsumer);
  consumer->state_ = std::make_unique<State>();
  State& state = *consumer->state_;
  auto conf = raw_conf(settings, state.log);
  if (!conf) return tl::unexpected(conf.error());
  auto client = make_client(RD_KAFKA_CONSUMER, std::move(*conf));
  if (!client) return tl::unexpected(client.error());
  state.client = *client;
  rd_kafka_poll_set_consumer(state.client);
  RdList list(rd_kafka_topic_partition_list_new(1));
  for (const auto& topic : topics) rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  if (const auto error = rd_kafka_subscribe(state.client, list.get()))
    return fail(ErrorKind::kInvalid, rd_kafka_err2str(error));
  return consumer;
}

RawConsumer::~RawConsumer() {
  if (!state_ || state_->client == nullptr) return;
  if (state_->early != nullptr) rd_kafka_message_destroy(state_->early);
  rd_kafka_destroy_flags(state_->client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

Result<std::optional<RawMessage>> RawConsumer::poll(Duration wait) {
  rd_kafka_message_t* message = std::exchange(state_->early, nullptr);
  if (message == nullptr) message = rd_kafka_consumer_poll(state_->client, milliseconds(wait));
  if (message == nullptr) return std::optional<RawMessage>{};
  const auto error = message->err;
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    std::string text = rd_kafka_message_errstr(message);
    rd_kafka_message_destroy(message);
    if (error == RD_KAFKA_RESP_ERR__PARTITION_EOF || error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
      return std::optional<RawMessage>{};
    return fail(ErrorKind::kUnavailable, std::move(text));
  }
  RawMessage found;
  found.value.assign(static_cast<const char*>(message->payload), message->len);
  found.partition = PartitionId(message->partition);
  found.offset = Offset(message->offset);
  rd_kafka_timestamp_type_t type;
  found.timestamp_ms = rd_kafka_message_timestamp(message, &type);
  found.log_append_time = type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
  rd_kafka_message_destroy(message);
  return std::optional(std::move(found));
}

bool RawConsumer::wait_assigned(Duration wait) {
  const MonoTime until = system_clock().now().mono + wait;
  while (true) {
    rd_kafka_topic_partition_list_t* list = nullptr;
    if (rd_kafka_assignment(state_->client, &list) == RD_KAFKA_RESP_ERR_NO_ERROR) {
      RdList owned(list);
      if (owned->cnt > 0) return true;
    }
    if (state_->early != nullptr || system_clock().now().mono >= until) return state_->early != nullptr;
    state_->early = rd_kafka_consumer_poll(state_->client, 20);
    if (state_->early != nullptr && state_->early->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_message_destroy(std::exchange(state_->early, nullptr));
    }
  }
}

void RawConsumer::close(Duration deadline) {
  RdQueue queue(rd_kafka_queue_new(state_->client));
  if (rd_kafka_error_t* error = rd_kafka_consumer_close_queue(state_->client, queue.get())) {
    rd_kafka_error_destroy(error);
    return;
  }
  const MonoTime until = system_clock().now().mono + deadline;
  while (rd_kafka_consumer_closed(state_->client) == 0 && system_clock().now().mono < until) {
    rd_kafka_queue_poll_callback(queue.get(), 20);
  }
}

}  // namespace weir::client
