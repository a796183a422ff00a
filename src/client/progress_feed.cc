#include "client/progress_feed.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace weir::client {

using namespace std::chrono_literals;

std::vector<std::string> made_anew(std::map<std::string, std::string>& known,
                                   const std::vector<TopicDescription>& topics) {
  std::vector<std::string> changed;
  for (const TopicDescription& topic : topics) {
    if (topic.id.empty()) continue;
    const auto [at, first] = known.try_emplace(topic.name, topic.id);
    if (first || at->second == topic.id) continue;
    at->second = topic.id;
    changed.push_back(topic.name);
  }
  return changed;
}

ProgressReader::ProgressReader(ProgressFeedSettings settings)
    : settings_(std::move(settings)), admin_(settings_.admin) {}

Result<Committed> ProgressReader::read() {
  auto by_group = admin_.committed({settings_.group});
  const auto found = by_group.find(settings_.group);
  if (found == by_group.end()) return Committed{};
  if (!found->second) return tl::unexpected(found->second.error());
  Committed ours;
  for (const auto& [partition, offset] : *found->second)
    if (std::find(settings_.topics.begin(), settings_.topics.end(), partition.topic) != settings_.topics.end())
      ours.emplace(partition, offset);
  return ours;
}

std::vector<std::string> ProgressReader::topics_made_anew() {
  const auto topics = admin_.topics(settings_.topics);
  return topics ? made_anew(topic_ids_, *topics) : std::vector<std::string>{};
}

Result<std::int64_t> ProgressReader::lag(const Committed& committed) {
  auto topics = admin_.topics(settings_.topics);
  if (!topics) return tl::unexpected(topics.error());
  std::vector<TopicPartition> all;
  std::vector<TopicPartition> uncommitted;
  for (const TopicDescription& topic : *topics)
    for (const PartitionDescription& partition : topic.partitions) {
      all.push_back({topic.name, partition.id});
      if (!committed.contains(all.back())) uncommitted.push_back(all.back());
    }
  auto starts = admin_.list_offsets(uncommitted, OffsetSpec::kEarliest);
  std::int64_t sum = 0;
  for (auto& [partition, end] : admin_.list_offsets(all, OffsetSpec::kLatest)) {
    if (!end) return tl::unexpected(end.error());
    const auto known = committed.find(partition);
    Offset from;
    if (known != committed.end()) {
      from = known->second;
    } else {
      const auto start = starts.find(partition);
      if (start == starts.end() || !start->second)
        return fail(ErrorKind::kUnavailable, "the start of " + partition.topic + " could not be read");
      from = *start->second;
    }
    sum += std::max<std::int64_t>(0, *end - from);
  }
  return sum;
}

ProgressFeed::ProgressFeed(ProgressFeedSettings settings, Producer& producer)
    : settings_(std::move(settings)), producer_(producer), reader_(settings_) {}

ProgressFeed::~ProgressFeed() { stop(); }

void ProgressFeed::start() {
  thread_ = std::thread([this] { run(); });
}

void ProgressFeed::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  reader_.interrupt();
  if (thread_.joinable()) thread_.join();
}

void ProgressFeed::run() {
  log::Every complaints(30s);
  MonoTime next_look{};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const MonoTime now = system_clock().now().mono;
    auto committed = reader_.read();
    if (committed) {
      const bool look = now >= next_look;
      if (look) {
        next_look = now + 1s;
        for (const std::string& topic : reader_.topics_made_anew()) {
          log::warn("topic {} was made anew: what was not consumed of the old one is waited for no more", topic);
          producer_.forget(topic);
        }
      }
      producer_.consumed(*committed);
      if (look && settings_.lag) {
        auto lag = reader_.lag(*committed);
        producer_.set_lag(lag ? std::optional(*lag) : std::nullopt);
      }
    } else if (committed.error().kind != ErrorKind::kClosed && complaints.allow(now)) {
      log::warn("progress of group {} cannot be read: {}", settings_.group, committed.error().message);
    }
    lock.lock();
    wake_.wait_for(lock, settings_.period, [this] { return stopping_; });
  }
}

}  // namespace weir::client
