#include "client/memory_broker.h"

#include <algorithm>
#include <deque>

#include "base/assert.h"
#include "client/consumer_core.h"
#include "client/producer_core.h"

namespace weir::client {

// ---- Producing -----------------------------------------------------------------------------------------------------

/// One client library: keeps records in order, resends until they are acknowledged, never appends one twice.
class MemoryProducer final : public ProducerTransport {
 public:
  MemoryProducer(MemoryBroker& broker, const ProducerSettings& settings, Wake wake)
      : broker_(broker), settings_(settings), wake_(std::move(wake)) {
    std::lock_guard lock(broker_.mutex_);
    broker_.producers_.insert(this);
  }
  ~MemoryProducer() override {
    std::lock_guard lock(broker_.mutex_);
    broker_.producers_.erase(this);
  }

  Handed hand_over(const Record& record, WallTime timestamp, void* token) override {
    std::lock_guard lock(broker_.mutex_);
    if (broken_) return {Hand::kBroken, "fatal", "broken by the test"};
    auto topic = broker_.topics_.find(record.topic);
    if (broker_.up && topic == broker_.topics_.end())
      return {Hand::kPermanent, "unknown_topic", "the topic does not exist"};
    const int count = topic == broker_.topics_.end() ? 1 : topic->second;
    if (record.partition && record.partition->value >= count)
      return {Hand::kPermanent, "bad_partition", "there is no such partition"};
    PartitionId partition = record.partition.value_or(PartitionId(0));
    if (!record.partition) {
      const std::size_t spread = record.key ? std::hash<std::string>{}(*record.key) : next_++;
      partition = PartitionId(static_cast<std::int32_t>(spread % static_cast<std::size_t>(count)));
    }
    const Now now = broker_.clock_.now();
    pending_.push_back(
        {&record, timestamp, token, {record.topic, partition}, now.mono + settings_.linger, {}, kNoOffset});
    pump(now);
    wake_();
    return {};
  }

  void collect(std::vector<Report>& out) override {
    std::lock_guard lock(broker_.mutex_);
    const Now now = broker_.clock_.now();
    if (!broken_) pump(now);
    if (broken_) {
      for (auto& one : pending_) out.push_back({one.token, Report::Kind::kGivenBack, "fatal", "broken by the test"});
      pending_.clear();
      return;
    }
    std::erase_if(pending_, [&](const Pending& one) {
      if (one.refused) {
        out.push_back({one.token, Report::Kind::kPermanent, "too_large", "the broker refuses a batch so large"});
      } else if (one.offset != kNoOffset && broker_.up && broker_.answering && now.mono >= one.acked_at) {
        out.push_back({one.token, Report::Kind::kAcked, {}, {}, one.to.partition, one.offset});
      } else {
        return false;
      }
      return true;
    });
  }

  void push(Duration) override {
    std::lock_guard lock(broker_.mutex_);
    for (auto& one : pending_) one.send_at = MonoTime{};
    pump(broker_.clock_.now());
  }
  void give_back(Duration) override { broken_ = true; }
  Result<void> reopen() override {
    std::lock_guard lock(broker_.mutex_);
    WEIR_ASSERT(pending_.empty());
    if (broker_.failing_reopens > 0) {
      --broker_.failing_reopens;
      return fail(ErrorKind::kUnavailable, "told to fail");
    }
    broken_ = false;
    return {};
  }
  bool down() const override { return !broker_.up; }
  Duration throttle() const override { return {}; }
  std::vector<SettingInForce> in_force() const override { return {}; }

  void break_now(bool appended) {
    if (appended) pump(broker_.clock_.now());
    broken_ = true;
  }

 private:
  struct Pending {
    const Record* record;
    WallTime timestamp;
    void* token;
    TopicPartition to;
    MonoTime send_at;
    MonoTime acked_at;
    Offset offset;
    bool refused = false;
  };

  // With the broker's lock: appends what may be sent.
  void pump(Now now) {
    if (!broker_.up || !broker_.answering) return;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      Pending& one = pending_[i];
      if (one.offset != kNoOffset || one.refused || one.send_at > now.mono) continue;
      if (one.record->value && one.record->value->size() > broker_.max_message) {
        ++broker_.refusals_;
        for (std::size_t j = i; j < std::min(pending_.size(), i + broker_.batch_records); ++j) {
          if (pending_[j].offset == kNoOffset) pending_[j].refused = true;
        }
        continue;
      }
      auto& log = broker_.log(one.to);
      ConsumedRecord stored{one.to,          log.end(),         one.timestamp,       false,
                            one.record->key, one.record->value, one.record->headers, 0};
      one.offset = stored.offset;
      one.acked_at = now.mono + broker_.ack_delay;
      log.stored.push_back({std::move(stored), false});
    }
  }

  MemoryBroker& broker_;
  const ProducerSettings settings_;
  const Wake wake_;
  std::deque<Pending> pending_;
  std::size_t next_ = 0;
  bool broken_ = false;
};

// ---- Consuming -----------------------------------------------------------------------------------------------------

class MemoryConsumer final : public ConsumerTransport {
 public:
  MemoryConsumer(MemoryBroker& broker, const ConsumerSettings& settings) : broker_(broker), settings_(settings) {}
  ~MemoryConsumer() override {
    std::lock_guard lock(broker_.mutex_);
    remove();
  }

  void serve(std::vector<ConsumerEvent>& out) override {
    std::lock_guard lock(broker_.mutex_);
    if (!joined_ && !leaving_ && broker_.up) {
      joined_ = true;
      group().members.push_back(this);
      broker_.rebalance(group());
    }
    if (!broker_.up || !broker_.answering) return;
    std::vector<TopicPartition> given;
    for (const auto& [partition, owner] : group().owners) {
      if (owner == this && !mine_.contains(partition) && !leaving_) given.push_back(partition);
    }
    for (const auto& partition : given) mine_.insert(partition);
    if (!given.empty() || (joined_ && !told_)) {
      told_ = true;
      out.push_back({ConsumerEvent::Kind::kAssign, given});
    }
    for (auto& event : events_) out.push_back(std::move(event));
    events_.clear();
    for (auto& [partition, fetch] : fetches_) {
      const auto& log = broker_.log(partition);
      if ((fetch.next < log.start || fetch.next > log.end()) && !fetch.told) {
        fetch.told = true;
        ConsumerEvent event{ConsumerEvent::Kind::kOutOfRange};
        event.partition = partition;
        out.push_back(std::move(event));
      }
    }
  }

  Result<std::vector<AssignedPartition>> look_up(const std::vector<TopicPartition>& partitions, Duration) override {
    std::lock_guard lock(broker_.mutex_);
    if (!broker_.up || !broker_.answering) return fail(ErrorKind::kUnavailable, "no broker");
    std::vector<AssignedPartition> found;
    for (const auto& partition : partitions) {
      if (broker_.leaderless.contains(partition)) continue;
      AssignedPartition one{partition, std::nullopt, broker_.log(partition).start, broker_.log(partition).end()};
      const auto& committed = group().committed;
      if (auto at = committed.find(partition); at != committed.end()) one.committed = at->second;
      found.push_back(std::move(one));
    }
    return found;
  }

  void start(const std::vector<StartAt>& partitions) override {
    std::lock_guard lock(broker_.mutex_);
    for (const auto& one : partitions) fetches_[one.partition] = Fetch{one.offset, {}, false};
  }
  void stop(const std::vector<TopicPartition>& partitions) override {
    std::lock_guard lock(broker_.mutex_);
    for (const auto& partition : partitions) {
      fetches_.erase(partition);
      mine_.erase(partition);
      revoking_.erase(partition);
      auto& owners = group().owners;
      if (auto at = owners.find(partition); at != owners.end() && at->second == this) owners.erase(at);
    }
    if (leaving_ && mine_.empty()) remove();
    broker_.rebalance(group());
  }
  void seek(const TopicPartition& partition, Offset offset) override {
    std::lock_guard lock(broker_.mutex_);
    if (fetches_.contains(partition)) fetches_[partition] = Fetch{offset, {}, false};
  }

  void read(const TopicPartition& partition, std::size_t max, std::vector<ConsumedRecord>& out) override {
    std::unique_lock lock(broker_.mutex_);
    if (auto happens = std::exchange(broker_.on_read, nullptr)) {
      lock.unlock();
      happens();
      lock.lock();
    }
    auto at = fetches_.find(partition);
    if (at == fetches_.end()) return;
    fetch(partition, at->second);
    auto& ready = at->second.ready;
    for (; max > 0 && !ready.empty(); --max) {
      out.push_back(std::move(ready.front()));
      ready.pop_front();
    }
  }

  std::optional<Offset> end_reached(const TopicPartition& partition) override {
    std::lock_guard lock(broker_.mutex_);
    auto at = fetches_.find(partition);
    if (at == fetches_.end() || !at->second.ready.empty()) return std::nullopt;
    return at->second.next;
  }
  std::optional<Offset> log_end(const TopicPartition& partition) const override {
    std::lock_guard lock(broker_.mutex_);
    return broker_.log(partition).end();
  }

  void commit(const std::map<TopicPartition, Offset>& next) override {
    std::lock_guard lock(broker_.mutex_);
    ConsumerEvent event{ConsumerEvent::Kind::kCommitted};
    event.offsets = next;
    if (broker_.commits_fail || !broker_.up) {
      event.error = Error{ErrorKind::kUnavailable, "the coordinator is not available"};
    } else {
      for (const auto& [partition, offset] : next) {
        if (mine_.contains(partition)) group().committed[partition] = offset;
      }
    }
    events_.push_back(std::move(event));
  }

  void leave() override {
    std::lock_guard lock(broker_.mutex_);
    leaving_ = true;
    if (mine_.empty()) {
      remove();
    } else {
      revoke({mine_.begin(), mine_.end()});
    }
  }
  bool left() const override {
    std::lock_guard lock(broker_.mutex_);
    return leaving_ && mine_.empty() && broker_.up && broker_.answering && !broker_.leaving_hangs;
  }
  std::vector<SettingInForce> in_force() const override { return {}; }

  // With the broker's lock.
  void revoke(std::vector<TopicPartition> partitions) {
    std::erase_if(partitions, [&](const auto& partition) { return !revoking_.insert(partition).second; });
    if (!partitions.empty()) events_.push_back({ConsumerEvent::Kind::kRevoke, std::move(partitions)});
  }
  void lose_everything() {
    events_.push_back({ConsumerEvent::Kind::kLost, {mine_.begin(), mine_.end()}});
    revoking_.clear();
    told_ = false;
  }
  bool has(const TopicPartition& partition) const { return mine_.contains(partition); }
  bool wants(const std::string& topic) const {
    return !leaving_ && std::find(settings_.topics.begin(), settings_.topics.end(), topic) != settings_.topics.end();
  }

 private:
  struct Fetch {
    Offset next;
    std::deque<ConsumedRecord> ready;
    bool told = false;  // that `next` is out of range
  };

  MemoryBroker::Group& group() { return broker_.groups_[settings_.group_id]; }
  void remove() {
    auto& group = this->group();
    std::erase(group.members, this);
    std::erase_if(group.owners, [&](const auto& owned) { return owned.second == this; });
    broker_.rebalance(group);
  }
  void fetch(const TopicPartition& partition, Fetch& fetch) {
    if (!broker_.up || !broker_.answering || broker_.leaderless.contains(partition)) return;
    const auto& log = broker_.log(partition);
    if (fetch.next < log.start) return;
    while (fetch.ready.size() < broker_.prefetch && fetch.next < log.end()) {
      const auto& stored = log.stored[static_cast<std::size_t>(fetch.next - log.start)];
      ++fetch.next;
      if (stored.hidden) continue;
      broker_.fetched_bytes_ += stored.record.value ? stored.record.value->size() : 0;
      fetch.ready.push_back(stored.record);
    }
  }

  MemoryBroker& broker_;
  const ConsumerSettings settings_;
  bool joined_ = false;
  bool told_ = false;
  bool leaving_ = false;
  std::set<TopicPartition> mine_;  // told to the core and not given up
  std::set<TopicPartition> revoking_;
  std::map<TopicPartition, Fetch> fetches_;
  std::vector<ConsumerEvent> events_;
};

// ---- The broker ----------------------------------------------------------------------------------------------------

MemoryBroker::Log& MemoryBroker::log(const TopicPartition& partition) { return logs_[partition]; }

// Partitions without an owner go to the member that has fewest; a member with two more than another gives one up first.
void MemoryBroker::rebalance(Group& group) {
  auto count = [&](MemoryConsumer* member) {
    return std::count_if(group.owners.begin(), group.owners.end(),
                         [&](const auto& owned) { return owned.second == member; });
  };
  bool changed = false;
  for (const auto& [topic, partitions] : topics_) {
    for (int p = 0; p < partitions; ++p) {
      const TopicPartition partition{topic, PartitionId(p)};
      if (group.owners.contains(partition)) continue;
      MemoryConsumer* least = nullptr;
      for (auto* member : group.members) {
        if (member->wants(topic) && (least == nullptr || count(member) < count(least))) least = member;
      }
      if (least == nullptr) continue;
      group.owners[partition] = least;
      changed = true;
    }
  }
  for (auto* poor : group.members) {
    for (auto& [partition, owner] : group.owners) {
      if (owner == poor || !poor->wants(partition.topic) || count(owner) < count(poor) + 2 || !owner->has(partition))
        continue;
      owner->revoke({partition});
      changed = true;
      break;
    }
  }
  if (changed) ++group.generation;
}

void MemoryBroker::break_producers(bool appended) {
  std::lock_guard lock(mutex_);
  for (auto* producer : producers_) producer->break_now(appended);
}

void MemoryBroker::create_topic(const std::string& topic, int partitions) {
  std::lock_guard lock(mutex_);
  topics_[topic] = partitions;
  if (!topic_ids_.contains(topic)) topic_ids_[topic] = "id-" + std::to_string(++topics_made_);
}

void MemoryBroker::delete_topic(const std::string& topic) {
  std::lock_guard lock(mutex_);
  topics_.erase(topic);
  topic_ids_.erase(topic);
  std::erase_if(logs_, [&](const auto& log) { return log.first.topic == topic; });
}

Result<std::map<std::string, std::string>> MemoryBroker::topic_ids(const std::vector<std::string>& topics) const {
  std::lock_guard lock(mutex_);
  if (!up || !answering) return fail(ErrorKind::kUnavailable, "no broker");
  std::map<std::string, std::string> found;
  for (const auto& topic : topics) {
    if (const auto at = topic_ids_.find(topic); at != topic_ids_.end())
      found[topic] = gives_topic_ids ? at->second : std::string();
  }
  return found;
}

Offset MemoryBroker::append(const TopicPartition& partition, std::string value) {
  std::lock_guard lock(mutex_);
  auto& to = log(partition);
  const Offset offset = to.end();
  to.stored.push_back(
      {ConsumedRecord{partition, offset, clock_.now().wall, true, std::nullopt, std::move(value), {}, 0}, false});
  return offset;
}

void MemoryBroker::append_hidden(const TopicPartition& partition) {
  std::lock_guard lock(mutex_);
  log(partition).stored.push_back({ConsumedRecord{}, true});
}

void MemoryBroker::trim(const TopicPartition& partition, Offset start) {
  std::lock_guard lock(mutex_);
  auto& from = log(partition);
  const auto gone = std::min<std::int64_t>(start - from.start, static_cast<std::int64_t>(from.stored.size()));
  if (gone > 0) from.stored.erase(from.stored.begin(), from.stored.begin() + gone);
  from.start = start;
}

std::vector<ConsumedRecord> MemoryBroker::records(const TopicPartition& partition) const {
  std::lock_guard lock(mutex_);
  std::vector<ConsumedRecord> found;
  if (auto at = logs_.find(partition); at != logs_.end()) {
    for (const auto& stored : at->second.stored) {
      if (!stored.hidden) found.push_back(stored.record);
    }
  }
  return found;
}

std::vector<std::string> MemoryBroker::values(const std::string& topic) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  for (const auto& [partition, log] : logs_) {
    if (partition.topic != topic) continue;
    for (const auto& stored : log.stored) {
      if (!stored.hidden) found.push_back(stored.record.value.value_or(""));
    }
  }
  return found;
}

Offset MemoryBroker::log_end(const TopicPartition& partition) const {
  std::lock_guard lock(mutex_);
  auto at = logs_.find(partition);
  return at == logs_.end() ? Offset(0) : at->second.end();
}

std::optional<Offset> MemoryBroker::committed(const std::string& group, const TopicPartition& partition) const {
  std::lock_guard lock(mutex_);
  auto at = groups_.find(group);
  if (at == groups_.end()) return std::nullopt;
  auto offset = at->second.committed.find(partition);
  if (offset == at->second.committed.end()) return std::nullopt;
  return offset->second;
}

void MemoryBroker::set_committed(const std::string& group, const TopicPartition& partition, Offset next) {
  std::lock_guard lock(mutex_);
  groups_[group].committed[partition] = next;
}

void MemoryBroker::drop_members(const std::string& group) {
  std::lock_guard lock(mutex_);
  auto& dropped = groups_[group];
  for (auto* member : dropped.members) member->lose_everything();
  dropped.owners.clear();
  ++dropped.generation;
}

std::uint64_t MemoryBroker::generation(const std::string& group) const {
  std::lock_guard lock(mutex_);
  auto at = groups_.find(group);
  return at == groups_.end() ? 0 : at->second.generation;
}

std::size_t MemoryBroker::members(const std::string& group) const {
  std::lock_guard lock(mutex_);
  auto at = groups_.find(group);
  return at == groups_.end() ? 0 : at->second.members.size();
}

std::shared_ptr<ProducerCore> MemoryBroker::producer(const ProducerSettings& settings) {
  auto target = std::make_shared<ProducerCore*>(nullptr);
  auto transport = std::make_unique<MemoryProducer>(*this, settings, [target] { (*target)->wake(); });
  auto core = std::make_shared<ProducerCore>(settings, std::move(transport), clock_);
  *target = core.get();
  return core;
}

std::shared_ptr<ConsumerCore> MemoryBroker::consumer(const ConsumerSettings& settings, ConsumerHooks hooks) {
  return std::make_shared<ConsumerCore>(settings, std::move(hooks), std::make_unique<MemoryConsumer>(*this, settings),
                                        clock_);
}

}  // namespace weir::client
