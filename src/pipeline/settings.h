// What every part is told: defaults, then the config file, then the command line. One file serves `weir up`, `weir
// agent`, `weir sink` and `weir guard`; each takes what concerns it.
//
//   kafka:     settings of every Kafka client (bootstrap.servers, security), Kafka's names
//   producer:  Kafka's producer settings        consumer:  Kafka's consumer settings
//   limits:    messages_per_second, bytes_per_second, max_lag, pause, lag_target, window,
//              window_release_after, ack_delay_target
//   agent:     inputs, key, line_limit, ...     sink:      database, rate, dead_letter_topic, attempts
//   guard:     listen, period, steer, measure   broker:    server.properties names, for the embedded broker
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "broker/broker_config.h"
#include "guard/guard.h"
#include "pipeline/config_file.h"
#include "sink/sink.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace weir::pipeline {

struct Settings {
  ProducerSettings producer;
  agent::AgentSettings agent;
  sink::SinkSettings sink;
  guard::GuardSettings guard;
  /// For the embedded broker, in the order given; each has been tried.
  std::vector<Setting> broker;
  /// Where bootstrap.servers stands in the file; empty when it does not.
  std::string bootstrap_where;

  /// Points every Kafka client at `address`.
  void set_bootstrap(const std::string& address);
  /// The producer the agent opens. One budget over every stage: what the agent's readers may hold comes out of
  /// `buffer.memory`, which is what the user set and is shown.
  ProducerSettings producer_of_agent() const;
};

/// The defaults of a pipeline, before any file: client ids, topics, group.
Settings default_settings();

/// The defaults with the file's sections on top. kInvalid names file:line, the setting, and what is wrong with it.
Result<Settings> read_settings(const std::vector<Section>& sections);
/// The same from a path; an empty one gives the defaults.
Result<Settings> load_settings(const std::string& path);

/// Kafka's rule for the name of a topic.
Result<void> check_topic_name(std::string_view name);

/// What `weir up` gives its broker beyond the file: a single member, a replication factor written for a cluster.
Result<void> set_broker_defaults(broker::BrokerConfig& config);

/// "127.0.0.1:8080", "8080" or "localhost:8080" into the HTTP settings.
Result<void> set_http_address(http::ServerSettings& http, std::string_view text);

}  // namespace weir::pipeline
