#include "client/producer_core.h"

#include <algorithm>

#include "base/assert.h"

namespace weir {

using client::ProducerTransport;
using client::Report;

struct ProducerCore::Entry {
  Record record;
  OnDelivery on_delivery;
  flow::Charge charge;
  flow::Permit permit;
  std::uint64_t number = 0;
  std::size_t place = 0;  // in outstanding_
  Bytes payload = 0;
  bool alone = false;  // refused as too large in company: its next try is on its own
  bool cold = false;
  MonoTime accepted_at{};
  MonoTime handed_at{};
  MonoTime acked_at{};
  WallTime timestamp{};
  Delivery::Status status = Delivery::Status::kAcked;
  std::string_view reason;
  std::string detail;
  PartitionId partition{-1};
  Offset offset = kNoOffset;
};

namespace {

constexpr std::size_t kBatch = 256;  // handed over between two looks at reports
// Entry, deque slots and librdkafka's message; a header is a node of its own there. Measured upper bounds, not exact
// sizes.
constexpr Bytes kRecordOverhead = 640;
constexpr Bytes kHeaderOverhead = 128;
constexpr Duration kLagIsStale = defaults::kDirectiveTtl;
constexpr Duration kSilence = std::chrono::seconds(10);  // outstanding and not one acknowledgement for so long: blocked

constexpr Duration kAnswersWithin = std::chrono::seconds(5);  // what is on its way when the client is started anew

thread_local const ProducerCore* running_callback = nullptr;

Bytes payload_of(const Record& record) {
  Bytes size = 0;
  if (record.key) size += record.key->size();
  if (record.value) size += record.value->size();
  for (const auto& header : record.headers) size += header.name.size() + (header.value ? header.value->size() : 0);
  return size;
}

std::optional<Duration> release_after(const ProducerSettings& settings) {
  if (settings.window_release_after <= Duration::zero()) return std::nullopt;
  return std::max(settings.window_release_after, settings.lag_target);
}

flow::GateSettings gate_settings(const ProducerSettings& settings) {
  flow::GateSettings gate;
  gate.client_id = settings.client_id;
  if (settings.messages_per_second > 0) gate.records_per_second = settings.messages_per_second;
  if (settings.bytes_per_second > 0) gate.bytes_per_second = settings.bytes_per_second;
  if (settings.window)
    gate.end_to_end = flow::EndToEndWindow::Settings{
        .target = settings.lag_target, .floor = settings.window_floor, .release_after = release_after(settings)};
  if (settings.ack_delay_target > Duration::zero()) {
    flow::AdaptiveWindow::Settings adaptive;
    adaptive.target = settings.ack_delay_target;
    adaptive.ceiling = settings.buffer_memory;
    gate.adaptive = adaptive;
  }
  return gate;
}

}  // namespace

Bytes ProducerCore::charge_of(const Record& record) {
  Bytes size = kRecordOverhead + payload_of(record);
  if (record.key) size += record.key->size();
  for (const auto& header : record.headers)
    size += kHeaderOverhead + header.name.size() + (header.value ? header.value->size() : 0);
  return size;
}

Bytes ProducerCore::handed_limit(const ProducerSettings& settings) { return settings.buffer_memory / 4; }

// The client copies what it sends into request buffers; that share is set aside, so both together stay within
// buffer.memory.
ProducerCore::ProducerCore(ProducerSettings settings, std::unique_ptr<ProducerTransport> transport, const Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      transport_(std::move(transport)),
      budget_(settings_.buffer_memory - handed_limit(settings_)),
      gate_(gate_settings(settings_), budget_, journal_, clock.now().mono),
      lanes_(settings_.lane_weights),
      last_progress_(clock.now().mono) {
  in_force_ = transport_->in_force();
}

ProducerCore::~ProducerCore() {
  transport_.reset();  // its threads may still read the records
  std::lock_guard lock(mutex_);
  for (auto* queue : {&unreported_, &given_back_, &again_}) queue->clear();
  outstanding_.clear();  // entries hold permits and charges: before the gate and the budget go
  while (auto lane = lanes_.next()) lanes_.evict(*lane);
}

// ---- Entering ------------------------------------------------------------------------------------------------------

SendResult ProducerCore::send(Record& record, Duration max_wait, OnDelivery on_delivery) {
  if (in_child()) return {SendOutcome::kClosed};
  const Bytes payload = payload_of(record);
  const Bytes size = charge_of(record);
  std::string_view refused;
  if (record.topic.empty()) refused = "no_topic";
  if (record.partition && record.partition->value < 0) refused = "bad_partition";
  if (payload > settings_.max_request_size || size > budget_.limit()) refused = "too_large";
  const bool may_wait = threaded_ && !in_callback() && max_wait > Duration::zero();

  std::unique_lock lock(mutex_);
  if (!refused.empty()) {
    ++stats_.refused_rejected;
    return {SendOutcome::kRejected, refused};
  }
  const MonoTime began = clock_.now().mono;
  const MonoTime give_up = may_wait ? began + std::min<Duration>(max_wait, std::chrono::hours(24)) : began;
  bool waited = false;
  while (true) {
    const Now now = clock_.now();
    if (close_at_) return {SendOutcome::kClosed};
    std::optional<flow::Charge> charge;
    if (settings_.buffer_records == 0 || left() < settings_.buffer_records) charge = gate_.hold(now.mono, size);
    if (waited && (charge || now.mono >= give_up)) stats_.blocked += now.mono - began;
    if (charge) {
      auto entry = std::make_unique<Entry>();
      entry->record = std::move(record);
      entry->on_delivery = std::move(on_delivery);
      entry->charge = std::move(*charge);
      entry->number = next_number_++;
      entry->payload = payload;
      entry->accepted_at = now.mono;
      entry->timestamp = entry->record.timestamp == WallTime{} ? now.wall : entry->record.timestamp;
      ++stats_.accepted;
      ++stats_.waiting;
      const Lane lane = entry->record.lane;
      lanes_.push(lane, std::move(entry));
      woken_ = true;
      if (asleep_) work_.notify_one();
      return {SendOutcome::kAccepted};
    }
    if (now.mono >= give_up) {
      ++stats_.refused_full;
      return {SendOutcome::kFull};
    }
    waited = true;
    ++senders_waiting_;
    room_.wait_until(lock, give_up);
    --senders_waiting_;
  }
}

void ProducerCore::consumed(const std::map<TopicPartition, Offset>& next) {
  if (in_child()) return;
  std::lock_guard lock(mutex_);
  for (const auto& [partition, offset] : next) gate_.consumed(partition, offset);
  gate_.reported(clock_.now().mono);
  woken_ = true;
  if (asleep_) work_.notify_one();
}

void ProducerCore::forget(const std::string& topic) {
  if (in_child()) return;
  std::lock_guard lock(mutex_);
  gate_.forget(topic);
  woken_ = true;
  if (asleep_) work_.notify_one();
}

void ProducerCore::set_lag(std::optional<std::int64_t> records) {
  if (in_child()) return;
  {
    std::lock_guard lock(mutex_);
    lag_ = records;
    lag_at_ = clock_.now().mono;
  }
  wake();
}

void ProducerCore::apply(const Directive& directive) {
  if (in_child()) return;
  {
    std::lock_guard lock(mutex_);
    const MonoTime now = clock_.now().mono;
    if (directive.active(now)) {
      gate_.direct(now, directive);
    } else {
      gate_.undirect(now, directive.scope);
    }
  }
  wake();
}

// ---- Stepping ------------------------------------------------------------------------------------------------------

MonoTime ProducerCore::step() {
  const Now now = clock_.now();
  collect(now);
  run_callbacks();
  look_at_lag(now);
  abort_if_due(now);
  recover(now);
  MonoTime next = hand_over(now);
  bool flushing;
  {
    std::lock_guard lock(mutex_);
    flushing = (flush_left_ > 0 || close_at_) && !aborted_;
    if (close_at_ && left() > 0) next = std::min(next, *close_at_);
  }
  if (flushing && !outstanding_.empty()) {
    transport_->push(std::chrono::milliseconds(5));
    next = std::min(next, now.mono + std::chrono::milliseconds(5));
  }
  update_state(now);
  if (recovering_) next = std::min(next, std::max(reopen_at_, now.mono + std::chrono::milliseconds(5)));
  return next;
}

void ProducerCore::collect(Now now) {
  reports_.clear();
  transport_->collect(reports_);
  if (reports_.empty()) return;
  std::lock_guard lock(mutex_);
  for (auto& report : reports_) settle(now, report);
  last_progress_ = now.mono;
}

ProducerCore::EntryPtr ProducerCore::take_outstanding(Entry* entry) {
  WEIR_ASSERT(entry->place < outstanding_.size() && outstanding_[entry->place].get() == entry);
  EntryPtr taken = std::move(outstanding_[entry->place]);
  if (entry->place + 1 < outstanding_.size()) {
    outstanding_[entry->place] = std::move(outstanding_.back());
    outstanding_[entry->place]->place = entry->place;
  }
  outstanding_.pop_back();
  handed_bytes_ -= taken->payload;
  --stats_.in_flight;
  return taken;
}

// With the lock.
void ProducerCore::settle(Now now, Report& report) {
  EntryPtr entry = take_outstanding(static_cast<Entry*>(report.token));
  switch (report.kind) {
    case Report::Kind::kAcked: {
      TopicPartition partition{entry->record.topic, report.partition};
      if (report.offset.value >= 0) {
        entry->permit.succeeded(now.mono, partition, report.offset);
      } else {
        entry->permit.succeeded(now.mono);
      }
      entry->partition = report.partition;
      entry->offset = report.offset;
      entry->acked_at = now.mono;
      ++stats_.unreported;
      unreported_.push_back(std::move(entry));
      return;
    }
    case Report::Kind::kPermanent:
      // A broker refuses a batch as a whole: only a record refused on its own is known to be the one.
      if (report.reason == "too_large" && !entry->alone) {
        entry->alone = true;
        ++stats_.resent;
        take_again(std::move(entry));
      } else {
        end(std::move(entry), Delivery::Status::kRejected, report.reason, std::move(report.detail));
      }
      return;
    case Report::Kind::kGivenBack:
      if (aborted_) {
        end(std::move(entry), Delivery::Status::kUndelivered, "closed", std::move(report.detail));
        return;
      }
      if (!recovering_ && recover_log_.allow(now.mono)) {
        log::warn("producer {}: the client gave records back ({}); starting it anew and sending them again in order",
                  settings_.client_id, report.detail);
      }
      recovering_ = true;
      ++stats_.waiting;
      given_back_.push_back(std::move(entry));
      return;
  }
}

// With the lock. Ends an entry that is in none of the queues.
void ProducerCore::end(EntryPtr entry, Delivery::Status status, std::string_view reason, std::string detail) {
  entry->permit.dropped();
  entry->status = status;
  entry->reason = reason;
  entry->detail = std::move(detail);
  ++stats_.unreported;
  unreported_.push_back(std::move(entry));
}

// With the lock. Back to where it was in the order of sending, ahead of what has not been handed over yet.
void ProducerCore::take_again(EntryPtr entry) {
  auto at = std::upper_bound(again_.begin(), again_.end(), entry,
                             [](const auto& a, const auto& b) { return a->number < b->number; });
  ++stats_.waiting;
  again_.insert(at, std::move(entry));
}

void ProducerCore::recover(Now now) {
  if (!recovering_ || aborted_) return;
  if (!outstanding_.empty()) {
    transport_->give_back(kAnswersWithin);
    return;
  }
  if (now.mono < reopen_at_) return;
  if (auto opened = transport_->reopen(); !opened) {
    reopen_at_ = now.mono + std::chrono::seconds(1);
    return;
  }
  recovering_ = false;
  std::lock_guard lock(mutex_);
  stats_.resent += given_back_.size();
  std::sort(given_back_.begin(), given_back_.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  for (auto& entry : given_back_) {
    --stats_.waiting;  // take_again counts it
    take_again(std::move(entry));
  }
  given_back_.clear();
}

// Chooses what goes next, up to a batch; returns when to look again if something had to wait.
MonoTime ProducerCore::next_batch(Now now, std::vector<EntryPtr>& batch) {
  std::lock_guard lock(mutex_);
  const Bytes limit = handed_limit(settings_);
  Bytes handed = handed_bytes_;
  auto fits = [&](const Entry& entry) {
    return (outstanding_.empty() && batch.empty()) || handed + entry.payload <= limit;
  };
  auto take = [&](EntryPtr entry) {
    handed += entry->payload;
    batch.push_back(std::move(entry));
  };

  while (!again_.empty() && batch.size() < kBatch) {
    Entry& entry = *again_.front();
    if (entry.alone && !(outstanding_.empty() && batch.empty())) return MonoTime::max();
    if (!fits(entry)) return MonoTime::max();
    take(std::move(again_.front()));
    again_.pop_front();
    if (batch.back()->alone) return MonoTime::max();
  }
  if (outstanding_.size() == 1 && outstanding_.front()->alone) return MonoTime::max();

  MonoTime retry_at = MonoTime::max();
  std::array<bool, kLanes> skip{};
  while (batch.size() < kBatch) {
    const auto lane = lanes_.next(skip);
    if (!lane) break;
    Entry& entry = *lanes_.front(*lane);
    if (!fits(entry)) return MonoTime::max();
    auto admission = gate_.admit(now.mono, entry.payload, entry.record.topic, entry.record.partition);
    if (!admission) {
      retry_at = std::min(retry_at, admission.error().retry_at);
      skip[static_cast<std::size_t>(*lane)] = true;
      continue;
    }
    entry.permit = std::move(*admission);
    take(lanes_.pop(*lane));
  }
  if (batch.size() == kBatch) return now.mono;
  return retry_at;
}

MonoTime ProducerCore::hand_over(Now now) {
  if (recovering_ || aborted_) return MonoTime::max();
  std::vector<EntryPtr> batch;
  MonoTime retry_at = next_batch(now, batch);
  if (batch.empty()) return retry_at;

  const std::size_t before = outstanding_.size();
  std::vector<std::pair<EntryPtr, ProducerTransport::Handed>> refused;
  std::size_t at = 0;
  for (; at < batch.size(); ++at) {
    Entry& entry = *batch[at];
    auto handed = transport_->hand_over(entry.record, entry.timestamp, &entry);
    if (handed.result == ProducerTransport::Hand::kBroken) {
      recovering_ = true;
      if (recover_log_.allow(now.mono))
        log::warn("producer {}: {}; starting the client anew", settings_.client_id, handed.detail);
    }
    if (handed.result == ProducerTransport::Hand::kFull || recovering_) break;
    if (handed.result == ProducerTransport::Hand::kPermanent) {
      refused.emplace_back(std::move(batch[at]), std::move(handed));
      continue;
    }
    entry.handed_at = now.mono;
    entry.place = outstanding_.size();
    outstanding_.push_back(std::move(batch[at]));
  }

  {
    std::lock_guard lock(mutex_);
    for (std::size_t i = before; i < outstanding_.size(); ++i) {
      outstanding_[i]->cold = stats_.acked + stats_.unreported == 0;
      handed_bytes_ += outstanding_[i]->payload;
    }
    if (before == 0) last_progress_ = now.mono;
    stats_.in_flight = outstanding_.size();
    stats_.waiting -= batch.size();
    stats_.peak_buffer_bytes = std::max(stats_.peak_buffer_bytes, budget_.used() + handed_bytes_);
    for (auto& [entry, handed] : refused) {
      end(std::move(entry), Delivery::Status::kRejected, handed.reason, std::move(handed.detail));
    }
    if (at < batch.size()) retry_at = now.mono + std::chrono::milliseconds(1);
    for (; at < batch.size(); ++at) take_again(std::move(batch[at]));
  }
  if (!refused.empty()) run_callbacks();
  return retry_at;
}

void ProducerCore::run_callbacks() {
  while (!unreported_.empty()) {
    // One lock for a few records: a callback may take its time, but memory must come back while it does.
    std::vector<EntryPtr> done;
    for (std::size_t i = 0; i < 64 && !unreported_.empty(); ++i) {
      done.push_back(std::move(unreported_.front()));
      unreported_.pop_front();
      Entry& entry = *done.back();
      if (!entry.on_delivery) continue;
      Delivery delivery{.status = entry.status,
                        .reason = entry.reason,
                        .detail = entry.detail,
                        .partition = {entry.record.topic, entry.partition},
                        .offset = entry.offset,
                        .record = entry.record,
                        .accepted_at = entry.accepted_at,
                        .handed_at = entry.handed_at,
                        .acked_at = entry.acked_at,
                        .cold = entry.cold};
      const ProducerCore* outer = std::exchange(running_callback, this);
      entry.on_delivery(delivery);
      running_callback = outer;
    }
    {
      std::lock_guard lock(mutex_);
      for (auto& entry : done) {
        switch (entry->status) {
          case Delivery::Status::kAcked: ++stats_.acked; break;
          case Delivery::Status::kRejected: ++stats_.rejected; break;
          case Delivery::Status::kUndelivered: ++stats_.undelivered; break;
        }
        if (entry->number < flush_mark_ && flush_left_ > 0) --flush_left_;
      }
      stats_.unreported -= done.size();
    }
    done.clear();  // gives the memory back, outside the lock
    changed_.notify_all();
    // Woken for a handful of records each, senders would spend their time waking up. Looked at after the memory is
    // back: a sender that finds no room from now on was counted.
    bool room = false;
    {
      std::lock_guard lock(mutex_);
      room = senders_waiting_ > 0 && (left() == 0 || budget_.used() + budget_.limit() / 32 <= budget_.limit());
    }
    if (room) room_.notify_all();
  }
}

void ProducerCore::look_at_lag(Now now) {
  if (!settings_.max_lag) return;
  std::lock_guard lock(mutex_);
  if (lag_ && now.mono - lag_at_ > kLagIsStale) lag_.reset();
  if (!lag_ || *lag_ <= *settings_.max_lag || now.mono < paused_until_) return;
  paused_until_ = now.mono + settings_.pause_sleep;
  gate_.pause(now.mono, paused_until_, Signal{SignalKind::kLagRecords, static_cast<double>(*lag_)},
              fmt::format("lag is {} records, max_lag {}", *lag_, *settings_.max_lag));
}

void ProducerCore::abort_if_due(Now now) {
  {
    std::lock_guard lock(mutex_);
    if (!close_at_ || now.mono < *close_at_ || aborted_) return;
    aborted_ = true;
    std::deque<EntryPtr> rest;
    for (auto& entry : given_back_) rest.push_back(std::move(entry));
    for (auto& entry : again_) rest.push_back(std::move(entry));
    while (auto lane = lanes_.next()) rest.push_back(lanes_.evict(*lane));
    given_back_.clear();
    again_.clear();
    stats_.waiting = 0;
    for (auto& entry : rest)
      end(std::move(entry), Delivery::Status::kUndelivered, "closed", "the producer was closed first");
  }
  if (!outstanding_.empty()) transport_->give_back(Duration::zero());
  run_callbacks();
}

void ProducerCore::update_state(Now now) {
  const bool down = transport_->down();
  const Duration throttle = transport_->throttle();
  std::lock_guard lock(mutex_);
  down_ = down;
  if (down) {  // silence counts from when somebody could answer
    last_progress_ = now.mono;
    gate_.unreachable(now.mono);
  }
  if (gate_.note_release(now.mono)) {
    if (gate_.end_to_end()->released(now.mono)) {
      log::warn("producer {}: the consumer's progress cannot be read; its window is let go, buffer.memory is the bound",
                settings_.client_id);
    } else {
      log::info("producer {}: the consumer's progress is known again, its window is in force", settings_.client_id);
    }
  }
  stats_.broker_throttle = throttle;
  const bool silent = !outstanding_.empty() && now.mono - last_progress_ > kSilence;
  if (close_at_ && left() == 0) {
    stats_.state = ProducerState::kClosed;
  } else if (down || silent) {
    stats_.state = ProducerState::kBlocked;
  } else if (stats_.state == ProducerState::kBlocked) {
    stats_.state = ProducerState::kDraining;
  } else if (stats_.state == ProducerState::kDraining && left() == 0) {
    stats_.state = ProducerState::kOpen;
  }
}

void ProducerCore::wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  work_.notify_one();
}

void ProducerCore::wait_for_work(MonoTime until) {
  std::unique_lock lock(mutex_);
  asleep_ = true;
  work_.wait_until(lock, until, [&] { return woken_; });
  asleep_ = false;
  woken_ = false;
}

// ---- Ending --------------------------------------------------------------------------------------------------------

std::size_t ProducerCore::left() const { return stats_.waiting + stats_.in_flight + stats_.unreported; }

void ProducerCore::request_flush() {
  {
    std::lock_guard lock(mutex_);
    flush_mark_ = next_number_;
    flush_left_ = left();
  }
  wake();
}

std::size_t ProducerCore::wait_flushed(Duration deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::min<Duration>(deadline, std::chrono::hours(24)), [&] { return flush_left_ == 0; });
  return flush_left_;
}

void ProducerCore::request_close(Duration deadline) {
  {
    std::lock_guard lock(mutex_);
    if (close_at_) return;
    close_at_ = clock_.now().mono + std::min<Duration>(deadline, std::chrono::hours(24));
  }
  room_.notify_all();
  wake();
}

bool ProducerCore::finished() const {
  std::lock_guard lock(mutex_);
  return close_at_ && left() == 0;
}

bool ProducerCore::closing() const {
  std::lock_guard lock(mutex_);
  return close_at_.has_value();
}

bool ProducerCore::wait_finished(Duration wait) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait, [&] { return left() == 0; });
}

std::size_t ProducerCore::undelivered() const {
  std::lock_guard lock(mutex_);
  return stats_.undelivered + (aborted_ ? left() : 0);
}

void ProducerCore::release_transport() { transport_.reset(); }

bool ProducerCore::in_callback() const { return running_callback == this; }

ProducerStats ProducerCore::stats() const {
  if (in_child()) return {};
  std::lock_guard lock(mutex_);
  ProducerStats stats = stats_;
  // Nothing is in flight where there is no connection: the client keeps it.
  if (down_) stats.waiting += std::exchange(stats.in_flight, 0);
  for (std::size_t i = 0; i < kLanes; ++i) stats.waiting_by_lane[i] = lanes_.size(static_cast<Lane>(i));
  stats.buffer_bytes = budget_.used() + handed_bytes_;
  stats.peak_buffer_bytes = std::max(stats.peak_buffer_bytes, std::max(budget_.peak(), stats.buffer_bytes));
  if (const auto* window = gate_.end_to_end()) {
    stats.unconsumed = window->unconsumed();
    stats.window_records = window->limit();
  }
  const MonoTime now = clock_.now().mono;
  stats.limit = gate_.state(now);
  if (stats.state == ProducerState::kBlocked && stats.limit.why.empty())
    stats.limit.why = down_ ? "no broker can be reached" : "the broker does not answer";
  for (std::size_t i = 0; i < kLimitedByCount; ++i) {
    stats.limited_for[i] = gate_.limited_for(now, static_cast<LimitedBy>(i));
  }
  return stats;
}

}  // namespace weir
