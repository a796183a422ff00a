#include "client/rdkafka_common.h"

#include <algorithm>

#include "base/clock.h"
#include "client/blocked_signals.h"

namespace weir::client {

Result<RdConf> make_conf(const RdSettings& settings) {
  RdConf conf(rd_kafka_conf_new());
  char why[512];
  for (const auto& [name, value] : settings) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK) {
      std::string text = why;  // names the setting; some of them end in a line break
      while (!text.empty() && text.back() == '\n') text.pop_back();
      return fail(ErrorKind::kInvalid, std::move(text));
    }
  }
  return conf;
}

Result<rd_kafka_t*> make_client(rd_kafka_type_t type, RdConf conf) {
  BlockedSignals blocked;
  char why[512];
  rd_kafka_t* client = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (client == nullptr)
    return fail(ErrorKind::kInvalid, fmt::format("the Kafka client refuses its settings: {}", why));
  (void)conf.release();
  return client;
}

std::string value_in_force(rd_kafka_t* client, const std::string& name) {
  char value[1024];
  std::size_t size = sizeof value;
  if (rd_kafka_conf_get(rd_kafka_conf(client), name.c_str(), value, &size) != RD_KAFKA_CONF_OK) return {};
  return value;
}

void RdLog::line(int level, std::string_view facility, std::string_view text) {
  if (level > 5 || facility == "CONFWARN") return;  // info and debug of the library, advice on settings we chose
  {
    std::lock_guard lock(mutex_);
    auto kind = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& k) { return k.facility == facility; });
    if (kind == kinds_.end()) kind = kinds_.insert(kinds_.end(), Kind{std::string(facility)});
    if (!kind->every.allow(system_clock().now().mono)) return;
  }
  log::warn("kafka client {}: {}: {}", client_, facility, text);
}

void RdLog::error(rd_kafka_resp_err_t code, std::string_view text) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: return;  // what is wrong with each has been said
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
      return line(4, rd_kafka_err2name(code),
                  fmt::format("{}; see sasl.mechanism, sasl.username and sasl.password", text));
    case RD_KAFKA_RESP_ERR__SSL:
      return line(4, rd_kafka_err2name(code), fmt::format("{}; see security.protocol and ssl.ca.location", text));
    default: return line(4, rd_kafka_err2name(code), text);
  }
}

std::string ms_text(Duration duration) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

}  // namespace weir::client
