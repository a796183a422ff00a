// What librdkafka is told for a consumer, and what of it is in force.
#include <algorithm>

#include "client/kafka_settings.h"
#include "client/rdkafka_common.h"
#include "client/transport.h"

namespace weir::client {
namespace {

constexpr Bytes kFetchBytes = 64 * kKiB;  // at most: well-compressed records grow twentyfold once unpacked
constexpr Bytes kLargestBatch = kMiB;  // brokers take batches up to about this by default; a fetch must not be smaller
constexpr std::size_t kPartitionsPlannedFor = 32;

/// A quarter of the memory is for the prefetch, shared by the partitions; the library's limit is for each of them, and
/// is fixed before it is known how many there will be.
Bytes share_of_partition(const ConsumerSettings& s) {
  return std::clamp<Bytes>(s.buffer_memory / 4 / kPartitionsPlannedFor, 2 * kKiB, kMiB);
}
/// Half a prefetch: one that a single fetch fills is refilled only when the wait for idle partitions
/// (fetch.max.wait.ms) is over.
Bytes partition_fetch_bytes(const ConsumerSettings& s) {
  return s.max_partition_fetch_bytes > 0 ? s.max_partition_fetch_bytes
                                         : std::min(kFetchBytes, share_of_partition(s) / 2);
}

}  // namespace

Bytes prefetch_bytes(const ConsumerSettings& s) {
  return std::max(share_of_partition(s), 2 * partition_fetch_bytes(s));
}

RdSettings library_settings(const ConsumerSettings& s) {
  RdSettings list{
      {"bootstrap.servers", s.bootstrap_servers},
      {"client.id", s.client_id},
      {"group.id", s.group_id},
      {"session.timeout.ms", ms_text(s.session_timeout)},
      {"heartbeat.interval.ms", ms_text(s.heartbeat_interval)},
      {"max.poll.interval.ms", ms_text(s.max_poll_interval)},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"enable.partition.eof", "true"},  // tells where control records end
      {"auto.offset.reset", "error"},    // the core decides, and says so
      {"isolation.level", s.read_committed ? "read_committed" : "read_uncommitted"},
      {"check.crcs", "true"},  // as in Java: damaged records are not handed on
      {"fetch.min.bytes", std::to_string(s.fetch_min_bytes)},
      {"fetch.wait.max.ms", ms_text(s.fetch_max_wait)},
      {"max.partition.fetch.bytes", std::to_string(partition_fetch_bytes(s))},
      {"fetch.max.bytes", std::to_string(std::max(kLargestBatch, partition_fetch_bytes(s)))},
      {"queued.max.messages.kbytes", std::to_string(prefetch_bytes(s) / kKiB)},
      {"fetch.error.backoff.ms", "20"},  // also the wait after a full prefetch
      {"topic.metadata.refresh.interval.ms", "10000"},
      {"reconnect.backoff.ms", "50"},
      {"reconnect.backoff.max.ms", "500"},
      {"socket.nagle.disable", "true"},
      {"socket.keepalive.enable", "true"},
  };
  if (!s.group_instance_id.empty()) list.emplace_back("group.instance.id", s.group_instance_id);
  list.insert(list.end(), s.passed_through.begin(), s.passed_through.end());
  return list;
}

std::vector<SettingInForce> settings_in_force(const ConsumerSettings& s, rd_kafka_t* client) {
  const ConsumerSettings standard;
  std::vector<SettingInForce> list;
  auto ours = [&](std::string name, std::string value, bool is_default) {
    list.push_back({std::move(name), std::move(value), is_default ? "default" : "set"});
  };
  auto theirs = [&](const std::string& name, const std::string& library_name, std::string source) {
    list.push_back({name, value_in_force(client, library_name), std::move(source)});
  };
  auto source = [](bool is_default) { return std::string(is_default ? "default" : "set"); };
  ours("buffer.memory", std::to_string(s.buffer_memory), s.buffer_memory == standard.buffer_memory);
  ours("max.poll.records", std::to_string(s.max_poll_records), s.max_poll_records == standard.max_poll_records);
  ours("auto.offset.reset",
       s.auto_offset_reset == OffsetReset::kEarliest ? "earliest"
       : s.auto_offset_reset == OffsetReset::kLatest ? "latest"
                                                     : "error",
       s.auto_offset_reset == standard.auto_offset_reset);
  theirs("bootstrap.servers", "bootstrap.servers", source(s.bootstrap_servers == standard.bootstrap_servers));
  theirs("client.id", "client.id", source(s.client_id == standard.client_id));
  theirs("group.id", "group.id", source(s.group_id == standard.group_id));
  if (!s.group_instance_id.empty()) theirs("group.instance.id", "group.instance.id", "set");
  theirs("fetch.min.bytes", "fetch.min.bytes", source(s.fetch_min_bytes == standard.fetch_min_bytes));
  theirs("fetch.max.wait.ms", "fetch.wait.max.ms", source(s.fetch_max_wait == standard.fetch_max_wait));
  theirs("session.timeout.ms", "session.timeout.ms", source(s.session_timeout == standard.session_timeout));
  theirs("heartbeat.interval.ms", "heartbeat.interval.ms", source(s.heartbeat_interval == standard.heartbeat_interval));
  theirs("max.poll.interval.ms", "max.poll.interval.ms", source(s.max_poll_interval == standard.max_poll_interval));
  theirs("isolation.level", "isolation.level", source(s.read_committed == standard.read_committed));
  theirs("enable.auto.commit", "enable.auto.commit", "never: a commit follows the store");
  theirs("max.partition.fetch.bytes", "max.partition.fetch.bytes",
         s.max_partition_fetch_bytes > 0 ? "set" : "small: well-compressed records grow twentyfold");
  theirs("fetch.max.bytes", "fetch.max.bytes", "one batch of the largest size");
  theirs("queued.max.messages.kbytes", "queued.max.messages.kbytes", "derived from buffer.memory, per partition");
  for (const auto& [name, value] : s.passed_through) {
    const auto same = std::ranges::find(list, name, &SettingInForce::name);
    if (same != list.end()) {
      same->source = "set";
    } else {
      list.push_back({name, is_secret(name) ? "(hidden)" : value, "set"});
    }
  }
  return list;
}

Result<void> try_rdkafka_consumer(const ConsumerSettings& settings) {
  RdSettings list = library_settings(settings);
  std::erase_if(list, [](const auto& setting) { return setting.first == "bootstrap.servers"; });
  auto conf = make_conf(list);
  if (!conf) return tl::unexpected(conf.error());
  rd_kafka_conf_set_log_cb(conf->get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  auto client = make_client(RD_KAFKA_CONSUMER, std::move(*conf));
  if (!client) return tl::unexpected(client.error());
  rd_kafka_destroy_flags(*client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  return {};
}

}  // namespace weir::client
