#include "client/kafka_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/units.h"
#include "client/java_settings.h"
#include "client/rdkafka_common.h"

namespace weir::client {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return low;
}

Result<void> refuse(std::string reason) { return fail(ErrorKind::kInvalid, std::move(reason)); }

// ---- Values --------------------------------------------------------------------------------------------------------

template <typename T>
Result<void> set_integer(T& to, std::string_view text, std::int64_t low, std::int64_t high) {
  auto number = parse_integer(trim(text), low, high);
  if (!number) return tl::unexpected(number.error());
  to = static_cast<T>(*number);
  return {};
}

constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr Bytes kLeastRequest = 1000;
constexpr Bytes kMostRequest = 1'000'000'000;  // of the library

Result<void> set_size(Bytes& to, std::string_view text, Bytes low, std::optional<Bytes> high = {}) {
  auto size = parse_size(trim(text));
  if (!size) return tl::unexpected(size.error());
  if (high && (*size < low || *size > *high)) return refuse(fmt::format("{} is not from {} to {}", text, low, *high));
  if (*size < low) return refuse(fmt::format("{} is below the smallest useful value, {} bytes", text, low));
  to = *size;
  return {};
}

Result<void> set_time(Duration& to, std::string_view text) {
  // A bare number is in milliseconds, as everywhere in Kafka.
  auto time = parse_duration(trim(text), std::chrono::milliseconds(1));
  if (!time) return tl::unexpected(time.error());
  to = *time;
  return {};
}

/// Refuses every value but `only`.
Result<void> must_be(std::string_view text, bool only, std::string_view why) {
  auto value = parse_bool(lower(trim(text)));
  if (!value) return tl::unexpected(value.error());
  if (*value != only) return refuse(std::string(why));
  return {};
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// In the library's plain numbers and words: of a time like 30s it would take the 30 and say nothing.
Result<std::string> plain(std::string_view name, const std::string& value) {
  if (name.ends_with(".ms") || name == "sasl.kerberos.min.time.before.relogin") {
    if (value == "-1") return name == "connections.max.idle.ms" ? "0" : value;  // both mean never
    Duration time{};
    if (auto fine = set_time(time, value); !fine) return tl::unexpected(fine.error());
    return ms_text(time);
  }
  if (name.ends_with(".buffer.bytes")) {
    if (value == "-1") return "0";  // the system's default, in Java's words and in the library's
    Bytes size = 0;
    if (auto fine = set_size(size, value, 0); !fine) return tl::unexpected(fine.error());
    return std::to_string(size);
  }
  if (one_of(name, {"batch.num.messages", "compression.level", "log_level"})) {
    auto number = parse_integer(value, -1, kMostInt);
    if (!number) return tl::unexpected(number.error());
    return std::to_string(*number);
  }
  if (one_of(name, {"check.crcs", "allow.auto.create.topics", "enable.ssl.certificate.verification"})) {
    auto on = parse_bool(lower(value));
    if (!on) return tl::unexpected(on.error());
    return *on ? "true" : "false";
  }
  if (name == "ssl.endpoint.identification.algorithm" && value.empty()) return "none";
  return value;
}

// ---- What both clients have ----------------------------------------------------------------------------------------

template <typename Settings>
Result<void> pass_through(Settings& settings, const std::string& name, const std::string& value) {
  auto text = plain(name, value);
  if (!text) return tl::unexpected(text.error());
  settings.passed_through.emplace_back(name, std::move(*text));
  return {};
}

/// True when the setting was one of these.
template <typename Settings>
Result<bool> set_common(Settings& settings, const std::string& name, const std::string& value) {
  constexpr bool kConsumes = std::is_same_v<Settings, ConsumerSettings>;
  const auto done = [](const Result<void>& result) -> Result<bool> {
    if (!result) return tl::unexpected(result.error());
    return true;
  };
  if (const auto answer = answer_java_setting(kConsumes ? ClientKind::kConsumer : ClientKind::kProducer, name, value))
    return done(*answer);
  if (one_of(name, {"bootstrap.servers", "metadata.broker.list"})) {
    settings.bootstrap_servers = value;
    return true;
  }
  if (name == "client.id") {
    settings.client_id = value;
    return true;
  }
  // The library's setting of that name is for producers only; this one is how long a consumer waits for an answer.
  if (kConsumes && name == "request.timeout.ms") return done(pass_through(settings, "socket.timeout.ms", value));
  if (name.starts_with("security.") || name.starts_with("sasl.") || name.starts_with("ssl.") ||
      one_of(name, {"broker.address.family", "socket.timeout.ms", "socket.send.buffer.bytes",
                    "socket.receive.buffer.bytes", "socket.connection.setup.timeout.ms", "reconnect.backoff.ms",
                    "reconnect.backoff.max.ms", "connections.max.idle.ms", "topic.metadata.refresh.interval.ms",
                    "metadata.max.age.ms", "request.timeout.ms", "debug", "log_level", "client.rack", "check.crcs",
                    "enable.ssl.certificate.verification"})) {
    return done(pass_through(settings, name, value));
  }
  if (one_of(name, {"send.buffer.bytes", "receive.buffer.bytes"}))
    return done(pass_through(settings, "socket." + name, value));
  if (one_of(name, {"statistics.interval.ms", "stats_cb"}))
    return fail(ErrorKind::kInvalid, "weir has metrics of its own: see docs/metrics.md");
  return false;
}

Result<void> check_serializer(const std::string& value) {
  if (value.ends_with("StringSerializer") || value.ends_with("ByteArraySerializer") ||
      value.ends_with("StringDeserializer") || value.ends_with("ByteArrayDeserializer")) {
    return {};  // bytes as they are: what weir does
  }
  return refuse("weir carries bytes; only the String and ByteArray forms mean that");
}

// ---- Producer ------------------------------------------------------------------------------------------------------

Result<void> set_acks(ProducerSettings& settings, const std::string& value) {
  const std::string low = lower(value);
  if (low == "all" || low == "-1") {
    settings.acks = "all";
  } else if (low == "1" || low == "0") {
    settings.acks = low;
  } else {
    return refuse(fmt::format("\"{}\" is none of all, -1, 1, 0", value));
  }
  return {};
}

/// Java has a level for each codec, the library one for that in use: library_settings() picks it.
Result<void> set_level(ProducerSettings& s, const std::string& name, std::string_view codec, const std::string& value) {
  const std::int64_t most = codec == "gzip" ? 9 : 12;
  std::int64_t level = 0;
  if (codec == "gzip" && value == "-1")
    level = -1;  // the codec's default
  else if (auto fine = set_integer(level, value, 1, most); !fine)
    return refuse(fmt::format("{} for librdkafka", fine.error().message));
  s.passed_through.emplace_back(name, std::to_string(level));
  return {};
}

Result<void> set_producer(ProducerSettings& s, const std::string& name, const std::string& value) {
  if (auto common = set_common(s, name, value); !common)
    return tl::unexpected(common.error());
  else if (*common)
    return {};

  if (name == "buffer.memory") return set_size(s.buffer_memory, value, kMiB);
  if (name == "queue.buffering.max.kbytes") {
    std::int64_t kib = 0;
    if (auto fine = set_integer(kib, value, 1024, kMostInt); !fine) return fine;
    s.buffer_memory = static_cast<Bytes>(kib) * kKiB;
    return {};
  }
  if (name == "queue.buffering.max.messages") return set_integer(s.buffer_records, value, 0, kMostInt);
  if (name == "max.block.ms") return set_time(s.max_block, value);
  if (name == "batch.size") return set_size(s.batch_size, value, 1, kMostInt);
  if (one_of(name, {"linger.ms", "queue.buffering.max.ms"})) return set_time(s.linger, value);
  if (one_of(name, {"compression.type", "compression.codec"})) {
    const std::string low = lower(value);
    if (!one_of(low, {"none", "gzip", "snappy", "lz4", "zstd"}))
      return refuse(fmt::format("\"{}\" is none of none, gzip, snappy, lz4, zstd", value));
    s.compression = low;
    return {};
  }
  if (one_of(name, {"acks", "request.required.acks"})) return set_acks(s, value);
  if (one_of(name, {"max.in.flight.requests.per.connection", "max.in.flight"}))
    return set_integer(s.max_in_flight, value, 1, 1000);
  if (one_of(name, {"retries", "message.send.max.retries"})) {
    if (trim(value) == "0")
      return refuse(
          "0 would give a record up at the first hiccup, which weir never does; leave it out or set at least 1");
    return set_integer(s.retries, value, 1, kMostInt);
  }
  if (name == "retry.backoff.ms") return set_time(s.retry_backoff, value);
  if (one_of(name, {"max.request.size", "message.max.bytes"}))
    return set_size(s.max_request_size, value, kLeastRequest, kMostRequest);
  if (one_of(name, {"delivery.timeout.ms", "message.timeout.ms"})) {
    if (one_of(trim(value), {"0", "2147483647"})) return {};
    return refuse(
        "an accepted record is never given up by a timer: only 0 (or 2147483647) is possible; max.block.ms bounds the "
        "wait for room");
  }
  if (name == "enable.idempotence")
    return must_be(value, true, "weir's producer is idempotent with acks=all; use acks=1 to do without");
  if (one_of(name, {"key.serializer", "value.serializer"})) return check_serializer(value);
  if (one_of(name, {"partitioner", "partitioner.class"}))
    return refuse("records with a key go where Java's default puts them (murmur2), others are spread");
  if (const auto codec = codec_of_level(name); !codec.empty()) return set_level(s, name, codec, value);
  if (one_of(name,
             {"batch.num.messages", "compression.level", "sticky.partitioning.linger.ms", "allow.auto.create.topics"}))
    return pass_through(s, name, value);
  return refuse("not a producer setting weir knows");
}

// ---- Consumer ------------------------------------------------------------------------------------------------------

Result<void> set_assignor(ConsumerSettings& s, const std::string& value) {
  std::string list;
  std::string_view rest = value;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::string one(trim(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (one.ends_with("CooperativeStickyAssignor")) one = "cooperative-sticky";
    if (one.ends_with(".RangeAssignor")) one = "range";
    if (one.ends_with(".RoundRobinAssignor")) one = "roundrobin";
    if (!one_of(one, {"range", "roundrobin", "cooperative-sticky"}))
      return refuse(fmt::format("\"{}\" is none of range, roundrobin, cooperative-sticky", one));
    list += (list.empty() ? "" : ",") + one;
  }
  if (list.find(',') != std::string::npos && list.find("cooperative") != std::string::npos) {
    return refuse("cooperative-sticky cannot be mixed with the others in the client library");
  }
  s.passed_through.emplace_back("partition.assignment.strategy", list);
  return {};
}

Result<void> set_consumer(ConsumerSettings& s, const std::string& name, const std::string& value) {
  if (auto common = set_common(s, name, value); !common)
    return tl::unexpected(common.error());
  else if (*common)
    return {};

  if (name == "group.id") {
    s.group_id = value;
    return {};
  }
  if (name == "group.instance.id") {
    s.group_instance_id = value;
    return {};
  }
  if (name == "max.poll.records") return set_integer(s.max_poll_records, value, 1, kMostInt);
  if (name == "buffer.memory") return set_size(s.buffer_memory, value, kMiB);
  if (name == "fetch.min.bytes") return set_size(s.fetch_min_bytes, value, 1);
  if (one_of(name, {"fetch.max.wait.ms", "fetch.wait.max.ms"})) return set_time(s.fetch_max_wait, value);
  if (one_of(name, {"max.partition.fetch.bytes", "fetch.message.max.bytes"}))
    return set_size(s.max_partition_fetch_bytes, value, 1);
  if (name == "fetch.max.bytes") {
    Bytes size = 0;
    if (auto fine = set_size(size, value, 1); !fine) return fine;
    if (size < 1'000'000)
      return refuse("below the largest batch a broker takes by default (1,000,000): such a batch could never be read");
    s.passed_through.emplace_back(name, std::to_string(size));
    return {};
  }
  if (name == "session.timeout.ms") {
    if (auto fine = set_time(s.session_timeout, value); !fine) return fine;
    // Kafka's rule of thumb: several heartbeats fit into a session. One that was set stays as it is.
    if (s.heartbeat_interval == ConsumerSettings().heartbeat_interval)
      s.heartbeat_interval = std::min(s.heartbeat_interval, s.session_timeout / 3);
    return {};
  }
  if (name == "heartbeat.interval.ms") return set_time(s.heartbeat_interval, value);
  if (name == "max.poll.interval.ms") return set_time(s.max_poll_interval, value);
  if (name == "auto.offset.reset") {
    const std::string low = lower(value);
    if (one_of(low, {"earliest", "smallest", "beginning"}))
      s.auto_offset_reset = OffsetReset::kEarliest;
    else if (one_of(low, {"latest", "largest", "end"}))
      s.auto_offset_reset = OffsetReset::kLatest;
    else if (one_of(low, {"error", "none"}))
      s.auto_offset_reset = OffsetReset::kError;
    else
      return refuse(fmt::format("\"{}\" is none of earliest (smallest), latest (largest), none (error)", value));
    return {};
  }
  if (one_of(name, {"enable.auto.commit", "auto.commit.enable"})) {
    return must_be(value, false,
                   "an offset is committed only after its record is stored: automatic commits would lose records");
  }
  if (name == "auto.commit.interval.ms") {  // without meaning while enable.auto.commit is false
    Duration unused{};
    return set_time(unused, value);
  }
  if (name == "enable.auto.offset.store")
    return must_be(value, false, "offsets are committed by call, nothing is stored on delivery");
  if (name == "isolation.level") {
    if (!one_of(value, {"read_committed", "read_uncommitted"}))
      return refuse(fmt::format("\"{}\" is neither read_committed nor read_uncommitted", value));
    s.read_committed = value == "read_committed";
    return {};
  }
  if (name == "group.protocol") {
    if (lower(value) == "classic") return {};
    return refuse("the client library of this build speaks the classic group protocol only");
  }
  if (one_of(name, {"key.deserializer", "value.deserializer"})) return check_serializer(value);
  if (name == "partition.assignment.strategy") return set_assignor(s, value);
  if (one_of(name, {"queued.min.messages", "queued.max.messages.kbytes"}))
    return refuse("derived from buffer.memory: set that");
  if (name == "enable.partition.eof") return refuse("weir needs it on and sets it itself");
  if (one_of(name, {"allow.auto.create.topics", "retry.backoff.ms"})) return pass_through(s, name, value);
  return refuse("not a consumer setting weir knows");
}

// The library knows the ranges of its own settings best.
template <typename Settings>
Result<void> taken_by_library(const Settings& settings) {
  if (auto conf = make_conf(library_settings(settings)); !conf) return tl::unexpected(conf.error());
  return {};
}

template <typename Settings, typename Set>
Result<Settings> translate(const KafkaSettings& given, Settings settings, Set set) {
  constexpr std::string_view kNested = "default.topic.config.";
  for (const auto& [full_name, value] : given) {
    const std::string name = full_name.starts_with(kNested) ? full_name.substr(kNested.size()) : full_name;
    auto fine = set(settings, name, std::string(trim(value)));
    if (fine) fine = taken_by_library(settings);
    if (!fine) return fail(fine.error().kind, fmt::format("{}: {}", full_name, fine.error().message));
  }
  return settings;
}

}  // namespace

Result<ProducerSettings> producer_settings(const KafkaSettings& settings, ProducerSettings base) {
  auto translated = translate(settings, std::move(base), set_producer);
  if (translated) {
    if (auto fine = check(*translated); !fine) return tl::unexpected(fine.error());
  }
  return translated;
}

Result<ConsumerSettings> consumer_settings(const KafkaSettings& settings, ConsumerSettings base) {
  return translate(settings, std::move(base), set_consumer);
}

Result<void> check(const ProducerSettings& s) {
  if (s.buffer_memory < kMiB) return refuse("buffer.memory: must be at least 1MiB");
  if (s.max_block < Duration::zero()) return refuse("max.block.ms: must not be negative");
  if (s.batch_size < 1) return refuse("batch.size: must be at least 1");
  if (s.linger < Duration::zero()) return refuse("linger.ms: must not be negative");
  if (!one_of(s.acks, {"all", "1", "0"})) return refuse(fmt::format("acks: \"{}\" is none of all, 1, 0", s.acks));
  if (s.max_in_flight < 1) return refuse("max.in.flight.requests.per.connection: must be at least 1");
  if (s.acks == "all" && s.max_in_flight > 5)
    return refuse("max.in.flight.requests.per.connection: at most 5 with acks=all, else the order could break");
  if (s.max_request_size < 1 || s.max_request_size > kMostRequest)
    return refuse(fmt::format("max.request.size: {} is not from 1 to {}", s.max_request_size, kMostRequest));
  for (const auto& [name, value] : s.passed_through) {
    // The library would take its codec's highest without a word.
    const std::string_view most = s.compression == "gzip" ? "9" : s.compression == "snappy" ? "0" : "12";
    if (name == "compression.level" && value.size() >= most.size() && (value.size() > most.size() || value > most) &&
        value != "-1" && s.compression != "none")
      return refuse(fmt::format("compression.level: {} is above {}, the highest of {}", value, most, s.compression));
  }
  if (!(s.messages_per_second >= 0)) return refuse("messages_per_second: must not be negative");
  if (!(s.bytes_per_second >= 0)) return refuse("bytes_per_second: must not be negative");
  for (const std::uint32_t weight : s.lane_weights) {
    if (weight < 1) return refuse("lane_weights: each must be at least 1, or the lane would starve");
  }
  if (s.lag_target <= Duration::zero()) return refuse("lag_target: must be above 0");
  if (s.window_floor < 1) return refuse("window_floor: must be at least 1");
  if (s.max_lag && *s.max_lag < 0) return refuse("max_lag: must not be negative");
  if (s.pause_sleep <= Duration::zero()) return refuse("pause_sleep: must be above 0");
  return {};
}

bool is_secret(std::string_view name) {
  for (const std::string_view part : {"password", "secret", ".pem", "oauthbearer.config", "jaas"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

Result<void> check(const ConsumerSettings& settings) {
  if (settings.topics.empty()) return refuse("a consumer needs at least one topic");
  if (settings.group_id.empty()) return refuse("group.id: must not be empty");
  if (settings.max_poll_records < 1) return refuse("max.poll.records: must be at least 1");
  if (settings.low_watermark >= settings.high_watermark)
    return refuse(fmt::format("low_watermark: {} is not below high_watermark, which is {}", settings.low_watermark,
                              settings.high_watermark));
  if (settings.buffer_memory < kMiB) return refuse("buffer.memory: must be at least 1MiB");
  if (settings.heartbeat_interval >= settings.session_timeout)
    return refuse(fmt::format("heartbeat.interval.ms: {} is not below session.timeout.ms, which is {}",
                              format_duration(settings.heartbeat_interval), format_duration(settings.session_timeout)));
  if (settings.session_timeout >= settings.max_poll_interval)
    return refuse(fmt::format("session.timeout.ms: {} is not below max.poll.interval.ms, which is {}",
                              format_duration(settings.session_timeout), format_duration(settings.max_poll_interval)));
  return {};
}

}  // namespace weir::client
