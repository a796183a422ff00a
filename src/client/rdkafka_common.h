// What both sides of librdkafka share: building a configuration, reading it back, its log lines.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "weir/consumer.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace weir::client {

struct RdDestroy {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
  void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
  void operator()(rd_kafka_topic_t* topic) const { rd_kafka_topic_destroy(topic); }
};
using RdConf = std::unique_ptr<rd_kafka_conf_t, RdDestroy>;
using RdList = std::unique_ptr<rd_kafka_topic_partition_list_t, RdDestroy>;
using RdQueue = std::unique_ptr<rd_kafka_queue_t, RdDestroy>;
using RdEvent = std::unique_ptr<rd_kafka_event_t, RdDestroy>;
using RdTopic = std::unique_ptr<rd_kafka_topic_t, RdDestroy>;

using RdSettings = std::vector<std::pair<std::string, std::string>>;

/// What the client library is told for ours, in its spelling.
RdSettings library_settings(const ProducerSettings& settings);
RdSettings library_settings(const ConsumerSettings& settings);
/// "gzip" of `compression.gzip.level`, the Java client's; empty for everything else.
std::string_view codec_of_level(std::string_view name);
/// How much of one partition a consumer reads ahead.
Bytes prefetch_bytes(const ConsumerSettings& settings);
/// What is in force in a consumer's client, in Java's spelling where there is one.
std::vector<SettingInForce> settings_in_force(const ConsumerSettings& settings, rd_kafka_t* client);

/// A configuration of `settings`; later ones win. Fails with the library's own reason.
Result<RdConf> make_conf(const RdSettings& settings);
/// Makes the instance; the configuration is consumed. No SIGPIPE and other signals run on its threads.
Result<rd_kafka_t*> make_client(rd_kafka_type_t type, RdConf conf);
/// The value in force of a setting in librdkafka spelling; empty when it has none.
std::string value_in_force(rd_kafka_t* client, const std::string& name);

/// Log lines of one client: its levels, at most one line per kind of message and broker in 30 s. Any thread.
class RdLog {
 public:
  explicit RdLog(std::string client) : client_(std::move(client)) {}
  void line(int level, std::string_view facility, std::string_view text);
  /// An error of the library, with the settings it may be about.
  void error(rd_kafka_resp_err_t code, std::string_view text);

 private:
  struct Kind {
    std::string facility;
    log::Every every{std::chrono::seconds(30)};
  };
  const std::string client_;
  std::mutex mutex_;
  std::vector<Kind> kinds_;
};

std::string ms_text(Duration duration);

}  // namespace weir::client
