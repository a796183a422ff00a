#include "client/rdkafka_common.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/clock.h"
#include "client/blocked_signals.h"

namespace weir::client {

namespace {

/// The library keeps whole numbers in an int and cuts larger ones without a word; text is kept as it is.
Result<void> check_not_cut(const std::string& name, const std::string& value) {
  std::int64_t number = 0;
  const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), number);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const bool small = wrong == std::errc() && number >= -kMost && number <= kMost;
  if (value.empty() || end != value.data() + value.size() || wrong == std::errc::invalid_argument || small) return {};
  // What the library says of the largest int tells the range, if that is smaller.
  RdConf conf(rd_kafka_conf_new());
  char text[512] = "";
  if (rd_kafka_conf_set(conf.get(), name.c_str(), std::to_string(kMost).c_str(), text, sizeof text) ==
      RD_KAFKA_CONF_OK) {
    std::size_t size = sizeof text;
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), nullptr, 0) == RD_KAFKA_CONF_OK &&
        rd_kafka_conf_get(conf.get(), name.c_str(), text, &size) == RD_KAFKA_CONF_OK && value == text)
      return {};
    return fail(ErrorKind::kInvalid, fmt::format("{} is outside the allowed range, which ends at {}", value, kMost));
  }
  constexpr std::string_view kRange = "outside allowed range ";
  std::string_view range = text;
  const auto at = range.find(kRange);
  if (at == std::string_view::npos) return {};  // wrong in another way, which it says itself
  range.remove_prefix(at + kRange.size());
  range = range.substr(0, range.find('\n'));
  return fail(ErrorKind::kInvalid, fmt::format("{} is outside allowed range {}", value, range));
}

}  // namespace

std::string_view codec_of_level(std::string_view name) {
  for (const std::string_view codec : {"gzip", "lz4", "zstd"})
    if (name == fmt::format("compression.{}.level", codec)) return codec;
  return {};
}

Result<RdConf> make_conf(const RdSettings& settings) {
  RdConf conf(rd_kafka_conf_new());
  char why[512];
  for (const auto& [name, value] : settings) {
    if (auto whole = check_not_cut(name, value); !whole) return tl::unexpected(whole.error());
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
