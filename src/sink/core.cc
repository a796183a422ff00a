#include "sink/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "metrics/names.h"

namespace weir::sink {
namespace {

constexpr Duration kStoreRetry = std::chrono::milliseconds(500);
constexpr Duration kDeadLetterRetry = std::chrono::milliseconds(500);
// What the topic refuses it mostly refuses again, and each refusal costs the producer its place in the order.
constexpr Duration kLongestDeadLetterRetry = std::chrono::seconds(10);
constexpr Duration kAnswerWait = std::chrono::milliseconds(10);  // between looks for the dead letters' answers
constexpr Duration kTopicLook = std::chrono::seconds(1);         // at the topics' ids, when nothing is stored
constexpr Duration kTopicRetry = std::chrono::milliseconds(200);
constexpr double kRateSlice = 0.1;  // seconds of `records_per_second` in one transaction

std::string place(const TopicPartition& partition, Offset offset) {
  return fmt::format("{}/{} offset {}", partition.topic, partition.partition.value, offset.value);
}

}  // namespace

SinkCore::SinkCore(const SinkSettings& settings, Store& store, Positions known, AskTopicIds ask, const Clock& clock)
    : settings_(settings),
      urgent_topics_(settings.consumer.first_topics.begin(), settings.consumer.first_topics.end()),
      store_(store),
      clock_(clock),
      identity_(store, std::move(ask), settings.database.string(), settings.consumer.bootstrap_servers),
      positions_(std::move(known)) {}

ConsumerHooks SinkCore::hooks() {
  return {.on_assign = [this](const AssignedPartition& partition) { return on_assign(partition); },
          .on_revoke = [this](const std::vector<TopicPartition>& partitions, bool) { on_revoke(partitions); },
          .on_gap =
              [this](const Gap& gap) {
                count([&](SinkStats& stats) { stats.expired += static_cast<std::uint64_t>(gap.to - gap.from); });
              }};
}

void SinkCore::attach(Consumer& consumer, Producer& dead_letters) {
  consumer_ = &consumer;
  dead_letters_.emplace(dead_letters, settings_.dead_letter_topic);
}

Result<void> SinkCore::check_cluster(const std::string& id) {
  const Result<std::string> kept = store_.cluster();
  if (!kept) return tl::unexpected(kept.error());
  if (kept->empty()) return id.empty() ? Result<void>{} : store_.set_cluster(id);
  if (*kept == id) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("{} belongs to cluster {}, and {} is cluster {}: use another --data",
                          settings_.database.string(), *kept, settings_.consumer.bootstrap_servers, id));
}

bool SinkCore::check_topics() {
  if (identity_.check() != TopicIdentity::Verdict::kOther) return true;
  fail_for_good(identity_.why());
  return false;
}

// Whether everything fetched so far is known to come from the topics the store knows. Asked for once for all that was
// fetched since the last time.
bool SinkCore::confirmed(Now now) { return !unconfirmed_ || confirm(now); }

bool SinkCore::confirm(Now now) {
  if (failed() || now.mono < confirm_at_) return false;
  switch (identity_.check()) {
    case TopicIdentity::Verdict::kSame:
      unconfirmed_ = false;
      next_look_ = now.mono + kTopicLook;
      return true;
    case TopicIdentity::Verdict::kOther: fail_for_good(identity_.why()); return false;
    case TopicIdentity::Verdict::kUnknown: break;
  }
  confirm_at_ = clock_.now().mono + kTopicRetry;
  if (topics_log_.allow(now.mono)) {
    log::warn("sink: nothing is stored while it cannot be told whether the topics are still the same: {}",
              identity_.why().message);
  }
  return false;
}

// What the store holds decides. With nothing stored, reading starts at the first record there is: what somebody else
// has committed says nothing about this store.
Result<std::optional<Offset>> SinkCore::on_assign(const AssignedPartition& assigned) {
  std::optional<Offset> kept;
  {
    std::lock_guard lock(mutex_);
    revoked_.erase(assigned.partition);  // what is left of the first time goes when the first new record comes
    if (const auto it = positions_.find(assigned.partition); it != positions_.end()) kept = it->second;
  }
  if (!kept) return assigned.log_start;
  if (assigned.log_end && *kept > *assigned.log_end) {
    return fail(
        ErrorKind::kInvalid,
        fmt::format(
            "{} has stored {}/{} up to offset {}, and the log ends at {}: the topic was made anew or this is another "
            "cluster; use another --data",
            settings_.database.string(), assigned.partition.topic, assigned.partition.partition.value, kept->value,
            assigned.log_end->value));
  }
  return kept;
}

void SinkCore::on_revoke(const std::vector<TopicPartition>& partitions) {
  std::lock_guard lock(mutex_);
  revoked_.insert(partitions.begin(), partitions.end());
}

template <typename Change>
void SinkCore::count(Change change) {
  std::lock_guard lock(mutex_);
  change(stats_);
}

void SinkCore::step(Duration wait) {
  if (failed()) return;
  Now now = clock_.now();
  if (polling_) {
    auto records = consumer_->poll(std::min(wait, time_to_work(now)));
    if (!records) {
      // An id that changed says more than the offsets that do not fit because of it.
      check_topics();
      return fail_for_good(records.error());
    }
    now = clock_.now();
    accept(now, std::move(*records));
  }
  drop_revoked();
  if (now.mono >= next_look_) confirm(now);
  take_answers(now);
  send_dead_letters(now);
  // One transaction: then come urgent records, and the end of a drain.
  if (may_write(now)) {
    Batch batch = next_batch(now);
    if (!batch.next.empty() && confirmed(now)) write(now, std::move(batch));
  }
  if (now.mono >= next_hidden_) pass_hidden_records(now);
}

// How long there is nothing to do but to wait for records.
Duration SinkCore::time_to_work(Now now) const {
  if (pending_ == 0) return Duration::max();
  MonoTime next = std::max({now.mono, store_retry_at_, unconfirmed_ ? confirm_at_ : MonoTime{}});
  if (rate_) next = std::max(next, flow::TokenBucket(*rate_).ready_at(now.mono));
  bool ready = false;
  bool awaiting = false;
  for (const auto& [partition, queue] : queues_) {
    if (queue.pending.empty()) continue;
    const Pending& front = queue.pending.front();
    ready |= front.state == State::kDeadLettered || (front.state == State::kReady && front.retry_at <= now.mono);
    awaiting |= front.state != State::kReady || front.retry_at > now.mono;
  }
  if (!ready) return awaiting ? kAnswerWait : Duration::max();
  return next - now.mono;
}

void SinkCore::accept(Now now, std::vector<ConsumedRecord> records) {
  if (records.empty()) return;
  unconfirmed_ = true;
  for (ConsumedRecord& record : records) {
    Queue& queue = queues_[record.partition];
    queue.urgent = urgent_topics_.contains(record.partition.topic);
    if (!queue.pending.empty() && queue.pending.back().record.assignment != record.assignment) {
      // The partition went away and came back: what is left of the first time comes again.
      count([&](SinkStats& stats) { stats.skipped["revoked"] += queue.pending.size(); });
      pending_ -= queue.pending.size();
      queue.pending.clear();
    }
    Pending& pending = queue.pending.emplace_back();
    pending.record = std::move(record);
    pending.retry_at = now.mono;
    prepare(pending);
    ++pending_;
  }
  count([&](SinkStats& stats) {
    stats.fetched += records.size();
    stats.in_memory = pending_;
  });
}

void SinkCore::prepare(Pending& pending) {
  const ConsumedRecord& record = pending.record;
  Result<client::LogEntry> entry =
      record.value ? parser_.parse(*record.value) : fail(ErrorKind::kInvalid, "the value is null");
  for (const Header& header : record.headers) {
    if (!header.value) continue;
    if (header.name == client::kSourceHeader) pending.source = &*header.value;
    if (header.name == client::kPositionHeader) {
      std::int64_t position = 0;
      const char* end = header.value->data() + header.value->size();
      const auto [stop, error] = std::from_chars(header.value->data(), end, position);
      if (error == std::errc() && stop == end) pending.source_pos = position;
    }
  }
  if (entry) {
    pending.parsed = true;
    pending.entry = std::move(*entry);
    return;
  }
  if (unparseable_log_.allow(clock_.now().mono))
    log::warn("sink: {} cannot be parsed and goes to {}: {}", place(record.partition, record.offset),
              settings_.dead_letter_topic, entry.error().message);
  pending.attempts = 1;
  pending.reason = entry.error().message;
  pending.state = State::kToDeadLetters;
}

// What is their new owner's now. The consumer has handed out nothing of them since it said so.
void SinkCore::drop_revoked() {
  std::lock_guard lock(mutex_);
  for (const TopicPartition& partition : std::exchange(revoked_, {})) {
    const auto queue = queues_.find(partition);
    if (queue == queues_.end()) continue;
    const std::size_t left = queue->second.pending.size();
    queues_.erase(queue);
    pending_ -= left;
    if (left > 0) stats_.skipped["revoked"] += left;
    stats_.in_memory = pending_;
  }
}

void SinkCore::take_answers(Now now) {
  for (const DeadLetters::Answer& answer : dead_letters_->collect()) {
    const auto queue = queues_.find(answer.partition);
    if (queue == queues_.end()) continue;
    for (Pending& pending : queue->second.pending) {
      if (pending.record.offset != answer.offset || pending.record.assignment != answer.assignment) continue;
      pending.state = answer.acked ? State::kDeadLettered : State::kToDeadLetters;
      if (answer.acked) break;
      pending.refused_wait = std::clamp(2 * pending.refused_wait, kDeadLetterRetry, kLongestDeadLetterRetry);
      pending.retry_at = now.mono + pending.refused_wait;
      if (dead_letter_log_.allow(now.mono)) {
        log::error("sink: {} was not acknowledged by {}: {}; its partition waits",
                   place(answer.partition, answer.offset), settings_.dead_letter_topic, answer.detail);
      }
      break;
    }
  }
}

void SinkCore::send_dead_letters(Now now) {
  if (now.mono < dead_letters_retry_at_) return;
  for (auto& [partition, queue] : queues_) {
    for (Pending& pending : queue.pending) {
      if (pending.state != State::kToDeadLetters || pending.retry_at > now.mono) continue;
      if (!confirmed(now)) return;
      const auto sent = dead_letters_->send(pending.record, pending.reason, pending.attempts);
      if (sent) {
        pending.state = State::kAwaitingDeadLetters;
        continue;
      }
      if (dead_letter_log_.allow(now.mono)) {
        log::error("sink: {} cannot go to {}: {}; its partition waits", place(partition, pending.record.offset),
                   settings_.dead_letter_topic, sent.error().message);
      }
      if (sent.error().kind != ErrorKind::kInvalid) {
        dead_letters_retry_at_ = now.mono + kDeadLetterRetry;
        return;
      }
      pending.retry_at = now.mono + kDeadLetterRetry;  // this one; another partition's may be taken
      break;
    }
  }
}

bool SinkCore::may_write(Now now) {
  if (pending_ == 0 || now.mono < store_retry_at_) return false;
  if (settings_.records_per_second <= 0) return true;
  if (!rate_) {
    rate_.emplace(settings_.records_per_second, std::max(1.0, settings_.records_per_second * kRateSlice), now.mono);
  }
  return rate_->ready(now.mono);
}

SinkCore::Batch SinkCore::next_batch(Now now) {
  Batch batch;
  std::size_t room = settings_.max_transaction;
  if (rate_) room = std::min(room, static_cast<std::size_t>(std::max(1.0, rate_->rate() * kRateSlice)));
  for (const bool urgent : {true, false}) {
    if (batch.rows.size() < room) add_oldest(urgent, room - batch.rows.size(), now, batch);
  }
  return batch;
}

// The oldest records go first, whatever their partition: a share for each partition would let the busiest ones grow
// old, and the group's lag is that of its oldest.
void SinkCore::add_oldest(bool urgent, std::size_t room, Now now, Batch& batch) {
  struct Candidate {
    WallTime time;
    std::size_t from;
  };
  std::vector<Queues::iterator> from;
  std::vector<Candidate> candidates;
  for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
    if (queue->second.urgent != urgent) continue;
    WallTime newest = WallTime::min();
    for (std::size_t i = 0; const Pending& pending : queue->second.pending) {
      if (i++ == room || !is_free(pending, now)) break;
      newest = std::max(newest, pending.record.timestamp);  // order inside the partition stays
      candidates.push_back({newest, from.size()});
    }
    from.push_back(queue);
  }
  if (candidates.size() > room) {
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(room);
    std::nth_element(candidates.begin(), end, candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.time < b.time; });
    candidates.erase(end, candidates.end());
  }
  std::vector<std::size_t> counts(from.size());
  for (const Candidate& candidate : candidates) ++counts[candidate.from];
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (counts[i] > 0) add_front(from[i], counts[i], batch);
  }
}

bool SinkCore::is_free(const Pending& pending, Now now) {
  return pending.state == State::kDeadLettered || (pending.state == State::kReady && pending.retry_at <= now.mono);
}

void SinkCore::add_front(Queues::iterator queue, std::size_t count, Batch& batch) {
  auto& [partition, waiting] = *queue;
  for (std::size_t i = 0; i < count; ++i) {
    Pending& pending = waiting.pending[i];
    batch.next[partition] = pending.record.offset + 1;
    if (pending.state == State::kDeadLettered) continue;
    const bool has_place = pending.source != nullptr && pending.source_pos.has_value();
    batch.rows.push_back({.partition = &partition,
                          .offset = pending.record.offset,
                          .server_id = pending.entry.server_id,
                          .level = pending.entry.level,
                          .message = pending.entry.message,
                          .timestamp = pending.entry.timestamp,
                          .source = has_place ? std::optional<std::string_view>(*pending.source) : std::nullopt,
                          .source_pos = has_place ? pending.source_pos : std::nullopt});
    batch.of_row.push_back(&pending);
  }
  batch.taken.emplace_back(queue, count);
}

void SinkCore::write(Now now, Batch batch) {
  const MonoTime begin = clock_.now().mono;
  const Written written = store_.write(batch.rows, batch.next);
  const Duration took = clock_.now().mono - begin;
  switch (written.kind) {
    case Written::Kind::kDone: stored(batch, written, took); return;
    case Written::Kind::kRefused: refused(now, *batch.of_row.at(written.index), written.error); return;
    case Written::Kind::kBroken: fail_for_good(written.error); return;
    case Written::Kind::kRetry: break;
  }
  store_retry_at_ = now.mono + kStoreRetry;
  count([](SinkStats& stats) { ++stats.store_retries; });
  if (store_log_.allow(now.mono))
    log::error("sink: the store does not take records, trying again: {}", written.error.message);
}

void SinkCore::refused(Now now, Pending& pending, const Error& why) {
  ++pending.attempts;
  const std::string where = place(pending.record.partition, pending.record.offset);
  if (pending.attempts < settings_.attempts) {
    pending.retry_at = now.mono + settings_.backoff;
    if (refusal_log_.allow(now.mono))
      log::warn("sink: the store refuses {}, attempt {}: {}", where, pending.attempts, why.message);
    return;
  }
  log::warn("sink: the store refuses {}, it goes to {} after attempt {}: {}", where, settings_.dead_letter_topic,
            pending.attempts, why.message);
  pending.reason = why.message;
  pending.state = State::kToDeadLetters;
  send_dead_letters(now);
}

void SinkCore::stored(const Batch& batch, const Written& written, Duration took) {
  const WallTime now = clock_.now().wall;
  std::uint64_t duplicates = 0;
  std::uint64_t dead = 0;
  std::uint64_t unparseable = 0;
  if (rate_) rate_->take(static_cast<double>(batch.rows.size()));
  {
    std::lock_guard lock(mutex_);
    if (store_seconds_ != nullptr) store_seconds_->record(took);
    for (std::size_t i = 0; i < batch.of_row.size(); ++i) {
      if (written.duplicate[i]) {
        ++duplicates;
        continue;
      }
      const std::string& topic = batch.of_row[i]->record.partition.topic;
      const Duration age = now - batch.of_row[i]->record.timestamp;
      latency_.record(age);
      if (urgent_topics_.contains(topic)) error_latency_.record(age);
      if (const auto metric = latency_by_topic_.find(topic); metric != latency_by_topic_.end())
        metric->second->record(age);
    }
  }
  for (const auto& [queue, taken] : batch.taken) {
    auto& pending = queue->second.pending;
    const auto end = pending.begin() + static_cast<std::ptrdiff_t>(taken);
    for (auto it = pending.begin(); it != end; ++it) {
      if (it->state != State::kDeadLettered) continue;
      ++dead;
      if (!it->parsed) ++unparseable;
    }
    pending.erase(pending.begin(), end);
    pending_ -= taken;
  }
  count([&](SinkStats& stats) {
    stats.stored += batch.rows.size() - duplicates;
    stats.duplicates += duplicates;
    stats.dead_lettered += dead;
    stats.unparseable += unparseable;
    stats.in_memory = pending_;
    ++stats.transactions;
  });
  publish(batch.next);
}

// Tells Kafka, and whoever waits, what the store holds now.
void SinkCore::publish(const Positions& next) {
  for (const auto& [partition, offset] : next) {
    // A partition that was taken away meanwhile is its new owner's to commit.
    (void)consumer_->commit(partition, offset);
  }
  {
    std::lock_guard lock(mutex_);
    for (const auto& [partition, offset] : next) positions_[partition] = offset;
  }
  moved_.notify_all();
}

// Markers of transactions take offsets and are never delivered: where nothing is pending, the position follows the
// consumer's.
void SinkCore::pass_hidden_records(Now now) {
  next_hidden_ = now.mono + settings_.commit_interval;
  Positions next;
  const Positions known = positions();
  for (const TopicPartition& partition : consumer_->assignment()) {
    if (const auto queue = queues_.find(partition); queue != queues_.end() && !queue->second.pending.empty()) continue;
    const std::optional<Offset> finished = consumer_->finished_prefix(partition);
    const auto kept = known.find(partition);
    if (finished && (kept == known.end() ? finished->value > 0 : *finished > kept->second)) next[partition] = *finished;
  }
  if (next.empty() || !confirm(now)) return;  // hidden records are fetched too, and not seen by accept()
  if (store_.write({}, next).kind == Written::Kind::kDone) publish(next);
}

void SinkCore::expose(Registry& registry) {
  std::lock_guard lock(mutex_);
  store_seconds_ = &registry.latency(metrics::kSinkStoreSeconds);
  for (const std::string& topic : settings_.consumer.topics) {
    latency_by_topic_[topic] = &registry.latency(metrics::kSinkLatencySeconds, {{"topic", topic}});
  }
}

bool SinkCore::empty() const {
  std::lock_guard lock(mutex_);
  return stats_.in_memory == 0;
}

SinkStats SinkCore::stats() const {
  std::lock_guard lock(mutex_);
  SinkStats out = stats_;
  out.latency = latency_.summary();
  out.error_latency = error_latency_.summary();
  return out;
}

Positions SinkCore::positions() const {
  std::lock_guard lock(mutex_);
  return positions_;
}

bool SinkCore::wait_positions(const std::function<bool(const Positions&)>& done, MonoTime until) const {
  std::unique_lock lock(mutex_);
  return moved_.wait_until(lock, until, [&] { return stats_.failed || done(positions_); }) && !stats_.failed;
}

void SinkCore::fail_for_good(Error error) {
  count([&](SinkStats& stats) {
    if (!stats.failed) stats.failed = std::move(error);
  });
  moved_.notify_all();
}

std::optional<Error> SinkCore::failed() const {
  std::lock_guard lock(mutex_);
  return stats_.failed;
}

}  // namespace weir::sink
