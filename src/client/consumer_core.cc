#include "client/consumer_core.h"

#include <algorithm>

#include "base/assert.h"

namespace weir {

using client::ConsumerEvent;

namespace {

constexpr Duration kLookUp = std::chrono::seconds(3);        // per attempt; the group goes on meanwhile
constexpr Duration kRetry = std::chrono::milliseconds(500);  // between attempts
constexpr Duration kCommitAnswer = std::chrono::seconds(5);  // then the commit counts as failed
constexpr std::size_t kReadAhead = 1024;                     // records of one partition taken from the client at once
constexpr Duration kTick = std::chrono::milliseconds(5);

thread_local const ConsumerCore* running_hook = nullptr;

Bytes size_of(const ConsumedRecord& record) {
  Bytes size = sizeof(ConsumedRecord) + record.partition.topic.size();
  if (record.key) size += record.key->size();
  if (record.value) size += record.value->size();
  for (const auto& header : record.headers)
    size += sizeof(Header) + header.name.size() + (header.value ? header.value->size() : 0);
  return size;
}

std::string name_of(const TopicPartition& partition) {
  return fmt::format("{}-{}", partition.topic, partition.partition.value);
}

}  // namespace

void Bell::ring() {
  {
    std::lock_guard lock(mutex_);
    ++rings_;
  }
  rung_.notify_all();
}

std::uint64_t Bell::rings() const {
  std::lock_guard lock(mutex_);
  return rings_;
}

void Bell::wait(std::uint64_t seen, MonoTime until) {
  std::unique_lock lock(mutex_);
  rung_.wait_until(lock, until, [&] { return rings_ != seen; });
}

/// A partition in one assignment.
struct ConsumerCore::Assigned {
  Assigned(std::uint64_t assignment, Offset start, const ConsumerSettings& settings)
      : number(assignment),
        prefix(start),
        marks(static_cast<std::int64_t>(settings.low_watermark), static_cast<std::int64_t>(settings.high_watermark)),
        start_(start) {}

  std::uint64_t number;
  client::FinishedPrefix prefix;
  flow::Watermarks marks;
  bool held_by_call = false;
  bool stopping = false;
  std::deque<ConsumedRecord> returned;  // handed out once, taken back unhandled
  std::deque<ConsumedRecord> ready;     // read from the client, not handed out yet
  Bytes ready_bytes = 0;
  std::optional<Offset> asked;  // the highest commit asked for
  std::optional<Offset> committed;
  std::optional<Offset> log_end;
  Offset start_;

  std::size_t in_hands() const { return prefix.unfinished() - returned.size(); }
  bool held() const { return held_by_call || stopping || marks.held(); }
};

ConsumerCore::ConsumerCore(ConsumerSettings settings, ConsumerHooks hooks,
                           std::unique_ptr<client::ConsumerTransport> transport, const Clock& clock)
    : settings_(std::move(settings)), hooks_(std::move(hooks)), clock_(clock), transport_(std::move(transport)) {
  in_force_ = transport_->in_force();
}

ConsumerCore::~ConsumerCore() = default;

template <typename Call>
auto ConsumerCore::hooked(Call call) {
  struct Restore {
    const ConsumerCore* outer;
    ~Restore() { running_hook = outer; }
  } restore{std::exchange(running_hook, this)};
  return call();
}

bool ConsumerCore::in_hook() const { return running_hook == this; }

// ---- Reading -------------------------------------------------------------------------------------------------------

std::vector<TopicPartition> ConsumerCore::reading_order() {
  std::vector<TopicPartition> first;
  std::vector<TopicPartition> rest;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [partition, assigned] : assigned_) {
      if (assigned.held()) continue;
      const bool early = std::find(settings_.first_topics.begin(), settings_.first_topics.end(), partition.topic) !=
                         settings_.first_topics.end();
      (early ? first : rest).push_back(partition);
    }
  }
  ++turn_;
  for (auto* group : {&first, &rest}) {
    if (!group->empty())
      std::rotate(group->begin(), group->begin() + static_cast<std::ptrdiff_t>(turn_ % group->size()), group->end());
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

Result<std::vector<ConsumedRecord>> ConsumerCore::poll(Duration wait) {
  if (in_child()) return fail(ErrorKind::kClosed, "the consumer was opened before fork(): open one in this process");
  std::lock_guard polling(poll_mutex_);
  const MonoTime until = clock_.now().mono + std::clamp<Duration>(wait, Duration::zero(), std::chrono::hours(24));
  std::vector<ConsumedRecord> out;
  while (true) {
    const std::uint64_t seen = data_.rings();
    {
      std::lock_guard lock(mutex_);
      if (failed_) return tl::unexpected(*failed_);
      if (close_at_) return fail(ErrorKind::kClosed, "the consumer is closed");
    }
    for (const auto& partition : reading_order()) {
      if (out.size() >= settings_.max_poll_records) break;
      take(partition, settings_.max_poll_records - out.size(), out);
    }
    if (!out.empty() || !threaded_ || clock_.now().mono >= until) return out;
    data_.wait(seen, std::min(until, clock_.now().mono + std::chrono::milliseconds(100)));
  }
}

// Reads one partition: what was given back first, then the prefetch, as far as watermark and memory allow.
std::size_t ConsumerCore::take(const TopicPartition& partition, std::size_t room, std::vector<ConsumedRecord>& out) {
  const std::size_t before = out.size();
  std::uint64_t number = 0;
  std::size_t want = 0;
  {
    std::lock_guard lock(mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end() || at->second.held()) return 0;
    Assigned& assigned = at->second;
    number = assigned.number;
    while (!assigned.returned.empty() && room > 0) {
      out.push_back(std::move(assigned.returned.front()));
      assigned.returned.pop_front();
      --room;
    }
    // Half of the memory is for the prefetch and what is read ahead. Something may always be handed out, whatever its
    // size.
    if (stats_.handed_out_bytes >= settings_.buffer_memory / 2) room = 0;
    room = std::min(room, settings_.high_watermark - std::min(settings_.high_watermark, assigned.prefix.unfinished()));
    // Read ahead of what is handed out: one busy partition among idle ones is fetched only every fetch.max.wait.ms once
    // its prefetch was full, so that alone would not keep a fast application going.
    want = room - std::min(room, assigned.ready.size());
    const Bytes ahead = settings_.buffer_memory / 4;
    if (ready_bytes_ < ahead && assigned.ready_bytes < ahead / 2) want = std::max(want, kReadAhead);
  }
  if (room == 0) return out.size() - before;

  std::vector<ConsumedRecord> read;
  if (want > 0) transport_->read(partition, want, read);
  const auto end = read.empty() ? transport_->end_reached(partition) : std::nullopt;

  std::lock_guard lock(mutex_);
  auto at = assigned_.find(partition);
  if (at == assigned_.end() || at->second.number != number || at->second.stopping) return out.size() - before;
  Assigned& assigned = at->second;
  for (auto& record : read) {
    const Bytes size = size_of(record);
    assigned.ready_bytes += size;
    ready_bytes_ += size;
    assigned.ready.push_back(std::move(record));
  }
  for (; room > 0 && !assigned.ready.empty(); assigned.ready.pop_front()) {
    ConsumedRecord& record = assigned.ready.front();
    const Bytes size = size_of(record);
    assigned.ready_bytes -= size;
    ready_bytes_ -= size;
    if (record.offset < assigned.prefix.position()) continue;  // fetched before a seek
    record.assignment = number;
    assigned.prefix.handed_out(record.offset, size);
    stats_.handed_out_bytes += size;
    ++stats_.fetched;
    out.push_back(std::move(record));
    --room;
  }
  if (end && assigned.ready.empty() && *end > assigned.prefix.position()) {
    assigned.prefix.skip_to(*end);
    work_.ring();
  }
  const bool was_held = assigned.marks.held();
  if (assigned.marks.update(static_cast<std::int64_t>(assigned.prefix.unfinished())) && !was_held) ++stats_.holds;
  return out.size() - before;
}

// With the lock, after records of so many bytes were finished.
void ConsumerCore::finished_some(Assigned& assigned, Bytes bytes) {
  const bool was_held = assigned.held() || stats_.handed_out_bytes >= settings_.buffer_memory / 2;
  stats_.handed_out_bytes -= bytes;
  assigned.marks.update(static_cast<std::int64_t>(assigned.prefix.unfinished()));
  if (was_held && !assigned.held()) data_.ring();
  if (assigned.stopping && assigned.in_hands() == 0) work_.ring();
}

void ConsumerCore::finish(const TopicPartition& partition, std::uint64_t assignment, Offset offset) {
  if (in_child()) return;
  std::lock_guard lock(mutex_);
  auto at = assigned_.find(partition);
  if (at == assigned_.end() || at->second.number != assignment) {
    ++stats_.fenced;
    return;
  }
  const Bytes before = at->second.prefix.bytes();
  if (!at->second.prefix.finish(offset)) return;
  ++stats_.finished;
  finished_some(at->second, before - at->second.prefix.bytes());
}

std::optional<Offset> ConsumerCore::finished_prefix(const TopicPartition& partition) const {
  std::lock_guard lock(mutex_);
  auto at = assigned_.find(partition);
  if (at == assigned_.end()) return std::nullopt;
  return at->second.prefix.prefix();
}

Result<void> ConsumerCore::commit(const TopicPartition& partition, Offset next) {
  if (in_child()) return fail(ErrorKind::kClosed, "the consumer was opened before fork(): open one in this process");
  {
    std::lock_guard lock(mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end()) {
      ++stats_.fenced;
      return fail(ErrorKind::kNotFound,
                  fmt::format("{} is not assigned to this consumer: its new owner commits", name_of(partition)));
    }
    Assigned& assigned = at->second;
    const Bytes before = assigned.prefix.bytes();
    while (!assigned.returned.empty() && assigned.returned.front().offset < next) assigned.returned.pop_front();
    stats_.finished += assigned.prefix.finish_before(next);
    finished_some(assigned, before - assigned.prefix.bytes());
    // Control records behind the last record are passed too, or the group would never be seen at the end.
    Offset target = next;
    if (assigned.prefix.unfinished() == 0) target = std::max(next, assigned.prefix.prefix());
    if (!assigned.asked || target > *assigned.asked) {
      assigned.asked = target;
      to_commit_[partition] = target;
    }
  }
  work_.ring();
  return {};
}

void ConsumerCore::commit_finished() {
  if (in_child()) return;
  {
    std::lock_guard lock(mutex_);
    for (auto& [partition, assigned] : assigned_) {
      const Offset prefix = assigned.prefix.prefix();
      if (prefix <= assigned.asked.value_or(assigned.start_)) continue;
      assigned.asked = prefix;
      to_commit_[partition] = prefix;
    }
  }
  work_.ring();
}

Result<void> ConsumerCore::flush_commits(Duration deadline) {
  if (in_child()) return fail(ErrorKind::kClosed, "the consumer was opened before fork(): open one in this process");
  std::unique_lock lock(mutex_);
  auto answered = [&] { return to_commit_.empty() && committing_.empty(); };
  const bool in_time = threaded_ && !in_hook()
                           ? changed_.wait_for(lock, std::min<Duration>(deadline, std::chrono::hours(24)), answered)
                           : answered();
  if (!in_time) return fail(ErrorKind::kTimeout, "commits were not answered in time");
  if (auto error = std::exchange(commit_error_, std::nullopt)) return tl::unexpected(*error);
  return {};
}

void ConsumerCore::hold(const TopicPartition& partition) {
  std::lock_guard lock(mutex_);
  if (auto at = assigned_.find(partition); at != assigned_.end()) at->second.held_by_call = true;
}

void ConsumerCore::release(const TopicPartition& partition) {
  {
    std::lock_guard lock(mutex_);
    if (auto at = assigned_.find(partition); at != assigned_.end()) at->second.held_by_call = false;
  }
  data_.ring();
}

void ConsumerCore::give_back(std::vector<ConsumedRecord> records) {
  {
    std::lock_guard lock(mutex_);
    for (auto& record : records) {
      auto at = assigned_.find(record.partition);
      if (at == assigned_.end() || at->second.number != record.assignment || !at->second.prefix.is_open(record.offset))
        continue;
      auto& returned = at->second.returned;
      auto place = std::lower_bound(returned.begin(), returned.end(), record.offset,
                                    [](const auto& r, Offset o) { return r.offset < o; });
      if (place != returned.end() && place->offset == record.offset) continue;
      returned.insert(place, std::move(record));
    }
  }
  data_.ring();
  work_.ring();
}

// ---- Stepping ------------------------------------------------------------------------------------------------------

MonoTime ConsumerCore::step() {
  const Now now = clock_.now();
  seen_work_ = work_.rings();
  events_.clear();
  transport_->serve(events_);
  for (auto& event : events_) handle(now, event);
  leave_if_closing(now);
  try_assign(now);
  for (auto& [partition, when] : std::exchange(out_of_range_, {})) {
    if (when > now.mono) {
      out_of_range_.emplace_back(partition, when);
    } else {
      out_of_range(partition);
    }
  }
  look_at_ends();
  commit_hidden_tails();
  go_on_revoking(now);
  send_commits(now);
  const bool busy = !to_assign_.empty() || revocation_ || leaving_ || !out_of_range_.empty();
  return busy ? now.mono + kTick : now.mono + std::chrono::milliseconds(100);
}

void ConsumerCore::handle(Now now, ConsumerEvent& event) {
  switch (event.kind) {
    case ConsumerEvent::Kind::kAssign: {
      to_assign_.insert(to_assign_.end(), event.partitions.begin(), event.partitions.end());
      assign_at_ = now.mono;
      std::lock_guard lock(mutex_);
      ++stats_.rebalances;
      rebalancing_ = !to_assign_.empty();
      if (to_assign_.empty()) ever_assigned_ = true;
      break;
    }
    case ConsumerEvent::Kind::kRevoke: {
      std::lock_guard lock(mutex_);
      rebalancing_ = true;
      std::erase_if(to_assign_, [&](const auto& p) {
        return std::find(event.partitions.begin(), event.partitions.end(), p) != event.partitions.end();
      });
      for (const auto& partition : event.partitions) {
        auto at = assigned_.find(partition);
        if (at == assigned_.end()) continue;
        at->second.stopping = true;
        at->second.returned.clear();
      }
      // Two at a time happen when the group is left while a rebalance is under way.
      if (!revocation_)
        revocation_.emplace(Revocation{{}, now.mono + (close_at_ ? Duration::zero() : settings_.revoke_drain)});
      revocation_->partitions.insert(revocation_->partitions.end(), event.partitions.begin(), event.partitions.end());
      return;
    }
    case ConsumerEvent::Kind::kLost: lose(event.partitions); return;
    case ConsumerEvent::Kind::kCommitted: {
      std::lock_guard lock(mutex_);
      if (event.error) {
        ++stats_.commits_failed;
        commit_error_ = event.error;
        if (log_.allow(now.mono)) log::warn("group {}: commit failed: {}", settings_.group_id, event.error->message);
        // Not lost: it goes again with the next one, unless a later value is waiting already.
        for (const auto& [partition, next] : event.offsets) {
          if (assigned_.contains(partition) && !close_at_) to_commit_.try_emplace(partition, next);
        }
        if (close_at_) final_commit_ok_ = false;
        commit_again_at_ = now.mono + kRetry;
      } else {
        ++stats_.commits;
        commit_error_.reset();
        for (const auto& [partition, next] : event.offsets) {
          if (auto at = assigned_.find(partition); at != assigned_.end()) at->second.committed = next;
        }
      }
      committing_.clear();
      changed_.notify_all();
      return;
    }
    case ConsumerEvent::Kind::kOutOfRange: out_of_range_.emplace_back(event.partition, now.mono); return;
    case ConsumerEvent::Kind::kFatal: fail_for_good(*event.error); return;
  }
  if (to_assign_.empty()) transport_->start({});  // an assignment of nothing is answered too
}

void ConsumerCore::fail_for_good(Error error) {
  {
    std::lock_guard lock(mutex_);
    if (!failed_) failed_ = std::move(error);
  }
  data_.ring();
}

// Finds where each new partition starts, then begins reading it.
void ConsumerCore::try_assign(Now now) {
  if (to_assign_.empty() || now.mono < assign_at_ || revocation_) return;
  auto known = transport_->look_up(to_assign_, kLookUp);
  if (!known) {
    if (log_.allow(now.mono)) {
      log::warn("group {}: offsets of {} partitions cannot be read ({}); trying again", settings_.group_id,
                to_assign_.size(), known.error().message);
    }
    assign_at_ = now.mono + kRetry;
    return;
  }
  std::vector<client::StartAt> starts;
  for (const auto& partition : *known) {
    const auto start = start_of(partition);
    if (!start) {
      to_assign_.clear();  // stopped for good: poll() says why
      return;
    }
    starts.push_back({partition.partition, *start});
  }
  {
    std::lock_guard lock(mutex_);
    for (const auto& start : starts) {
      auto [at, added] = assigned_.try_emplace(start.partition, ++assignments_, start.offset, settings_);
      WEIR_ASSERT(added);
      for (const auto& partition : *known) {
        if (partition.partition == start.partition) at->second.committed = partition.committed;
      }
    }
    ever_assigned_ = true;
    rebalancing_ = false;
  }
  to_assign_.clear();
  transport_->start(starts);
  data_.ring();
}

std::optional<Offset> ConsumerCore::start_of(const AssignedPartition& partition) {
  std::optional<Offset> wanted = partition.committed;
  if (hooks_.on_assign) {
    auto chosen = hooked([&] { return hooks_.on_assign(partition); });
    if (!chosen) {
      fail_for_good(chosen.error());
      return std::nullopt;
    }
    if (*chosen) wanted = **chosen;
  }
  const Offset first = partition.log_start.value_or(Offset{0});
  const Offset end = partition.log_end.value_or(first);
  if (wanted && *wanted < first) return over_gap(partition.partition, *wanted, partition);
  if (wanted && *wanted <= end) return wanted;
  if (wanted) {
    log::warn(
        "group {}: offset {} of {} is beyond the end of the log ({}): the log was made anew; auto.offset.reset decides",
        settings_.group_id, wanted->value, name_of(partition.partition), end.value);
  }
  switch (settings_.auto_offset_reset) {
    case OffsetReset::kEarliest: return first;
    case OffsetReset::kLatest: return end;
    case OffsetReset::kError: break;
  }
  fail_for_good(
      {ErrorKind::kNotFound, fmt::format("group {} has no usable offset for {} and auto.offset.reset is error",
                                         settings_.group_id, name_of(partition.partition))});
  return std::nullopt;
}

// Retention has passed `from`: goes on at the first retained record and says so, or stops.
std::optional<Offset> ConsumerCore::over_gap(const TopicPartition& partition, Offset from,
                                             const AssignedPartition& known) {
  const Offset to = *known.log_start;
  if (settings_.gap == GapPolicy::kError) {
    fail_for_good(
        {ErrorKind::kNotFound, fmt::format("records {} to {} of {} were deleted by retention before group {} read them",
                                           from.value, to.value - 1, name_of(partition), settings_.group_id)});
    return std::nullopt;
  }
  log::warn("group {}: records {} to {} of {} were deleted by retention before they were read; going on at {}",
            settings_.group_id, from.value, to.value - 1, name_of(partition), to.value);
  {
    std::lock_guard lock(mutex_);
    ++stats_.gaps;
    stats_.skipped += static_cast<std::uint64_t>(to - from);
  }
  if (hooks_.on_gap) hooked([&] { hooks_.on_gap(Gap{partition, from, to}); });
  return to;
}

void ConsumerCore::out_of_range(const TopicPartition& partition) {
  Offset from;
  {
    std::lock_guard lock(mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end()) return;
    from = at->second.prefix.position();
  }
  auto known = transport_->look_up({partition}, kLookUp);
  if (!known || known->empty() || !known->front().log_start) {
    out_of_range_.emplace_back(partition, clock_.now().mono + kRetry);
    return;
  }
  std::optional<Offset> to;
  if (from < *known->front().log_start) {
    to = over_gap(partition, from, known->front());
  } else {
    AssignedPartition anew = known->front();
    anew.committed = from;
    to = start_of(anew);
  }
  if (!to) return;
  {
    std::lock_guard lock(mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end()) return;
    at->second.prefix.skip_to(*to);
  }
  transport_->seek(partition, *to);
  data_.ring();
}

// With the lock.
void ConsumerCore::forget(std::map<TopicPartition, Assigned>::iterator at) {
  stats_.handed_out_bytes -= at->second.prefix.bytes();
  ready_bytes_ -= at->second.ready_bytes;
  assigned_.erase(at);
}

void ConsumerCore::lose(const std::vector<TopicPartition>& partitions) {
  if (hooks_.on_revoke) hooked([&] { hooks_.on_revoke(partitions, true); });
  {
    std::lock_guard lock(mutex_);
    ++stats_.rebalances;
    rebalancing_ = true;
    for (const auto& partition : partitions) {
      auto at = assigned_.find(partition);
      if (at != assigned_.end()) {
        forget(at);
      }
      to_commit_.erase(partition);
    }
  }
  std::erase_if(to_assign_,
                [&](const auto& p) { return std::find(partitions.begin(), partitions.end(), p) != partitions.end(); });
  transport_->stop(partitions);
}

// Drain, then on_revoke, then commit the finished prefix, then give up: in this order, each step when the one before is
// done.
void ConsumerCore::go_on_revoking(Now now) {
  if (!revocation_) return;
  Revocation& revocation = *revocation_;
  if (!revocation.asked) {
    {
      std::lock_guard lock(mutex_);
      for (const auto& partition : revocation.partitions) {
        auto at = assigned_.find(partition);
        if (at != assigned_.end() && at->second.in_hands() > 0 && now.mono < revocation.drain_until) return;
      }
    }
    if (hooks_.on_revoke) hooked([&] { hooks_.on_revoke(revocation.partitions, false); });
    std::lock_guard lock(mutex_);
    for (const auto& partition : revocation.partitions) {
      auto at = assigned_.find(partition);
      if (at == assigned_.end()) continue;
      const Offset prefix = at->second.prefix.prefix();
      if (prefix <= at->second.asked.value_or(at->second.start_)) continue;
      at->second.asked = prefix;
      to_commit_[partition] = prefix;
    }
    revocation.asked = true;
    revocation.stop_at = now.mono + kCommitAnswer;
    if (close_at_) revocation.stop_at = std::min(revocation.stop_at, *close_at_);
  }
  send_commits(now);
  {
    std::lock_guard lock(mutex_);
    const bool waiting = std::any_of(
        revocation.partitions.begin(), revocation.partitions.end(),
        [&](const auto& partition) { return to_commit_.contains(partition) || committing_.contains(partition); });
    if (waiting && now.mono < revocation.stop_at) return;
    if (waiting && close_at_) final_commit_ok_ = false;
    for (const auto& partition : revocation.partitions) {
      auto at = assigned_.find(partition);
      if (at != assigned_.end()) {
        forget(at);
      }
      to_commit_.erase(partition);
    }
  }
  const auto partitions = std::move(revocation.partitions);
  revocation_.reset();
  transport_->stop(partitions);
}

void ConsumerCore::look_at_ends() {
  for (const auto& partition : assignment()) {
    const auto end = transport_->log_end(partition);
    std::lock_guard lock(mutex_);
    if (auto at = assigned_.find(partition); at != assigned_.end() && end) at->second.log_end = end;
  }
}

// Markers and aborted records behind the last record an application committed belong to nobody: pass them by ourselves.
void ConsumerCore::commit_hidden_tails() {
  std::lock_guard lock(mutex_);
  for (auto& [partition, assigned] : assigned_) {
    if (assigned.prefix.unfinished() > 0) continue;
    const Offset asked = assigned.asked.value_or(assigned.start_);
    const Offset position = assigned.prefix.position();
    if (position <= asked || asked < assigned.prefix.handed_out_end()) continue;
    assigned.asked = position;
    to_commit_[partition] = position;
  }
}

void ConsumerCore::send_commits(Now now) {
  std::map<TopicPartition, Offset> next;
  {
    std::lock_guard lock(mutex_);
    if (!committing_.empty() && now.mono - commit_sent_ > kCommitAnswer) {
      ++stats_.commits_failed;
      commit_error_ = Error{ErrorKind::kTimeout, "the group coordinator did not answer a commit"};
      for (const auto& [partition, offset] : committing_) {
        if (assigned_.contains(partition)) to_commit_.try_emplace(partition, offset);
      }
      committing_.clear();
      changed_.notify_all();
    }
    if (!committing_.empty() || to_commit_.empty() || now.mono < commit_again_at_) return;
    next = std::exchange(to_commit_, {});
    committing_ = next;
    commit_sent_ = now.mono;
  }
  transport_->commit(next);
}

void ConsumerCore::wake() {
  work_.ring();
  data_.ring();
}

void ConsumerCore::wait_for_work(MonoTime until) { work_.wait(seen_work_, until); }

// ---- Ending --------------------------------------------------------------------------------------------------------

void ConsumerCore::request_close(Duration deadline) {
  {
    std::lock_guard lock(mutex_);
    if (close_at_) return;
    close_at_ = clock_.now().mono + std::clamp<Duration>(deadline, Duration::zero(), std::chrono::hours(24));
  }
  wake();
}

void ConsumerCore::leave_if_closing(Now now) {
  std::optional<MonoTime> close_at;
  {
    std::lock_guard lock(mutex_);
    close_at = close_at_;
  }
  if (!close_at) return;
  if (!leaving_) {
    leaving_ = true;
    to_assign_.clear();
    if (revocation_) revocation_->drain_until = now.mono;
    transport_->leave();
    return;
  }
  if (!revocation_ && transport_->left()) {
    std::lock_guard lock(mutex_);
    left_ = finished_ = true;
    changed_.notify_all();
  } else if (now.mono >= *close_at) {
    std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }
}

bool ConsumerCore::closing() const {
  std::lock_guard lock(mutex_);
  return close_at_.has_value();
}

bool ConsumerCore::finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

bool ConsumerCore::wait_finished(Duration wait) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait, [&] { return finished_; });
}

bool ConsumerCore::ended_well() const {
  std::lock_guard lock(mutex_);
  return left_ && final_commit_ok_;
}

void ConsumerCore::release_transport() {
  std::lock_guard polling(poll_mutex_);
  transport_.reset();
}

std::vector<TopicPartition> ConsumerCore::assignment() const {
  std::lock_guard lock(mutex_);
  std::vector<TopicPartition> partitions;
  for (const auto& [partition, assigned] : assigned_) partitions.push_back(partition);
  return partitions;
}

bool ConsumerCore::assigned() const {
  std::lock_guard lock(mutex_);
  return ever_assigned_ && !rebalancing_;
}

ConsumerStats ConsumerCore::stats() const {
  if (in_child()) return {};
  std::lock_guard lock(mutex_);
  ConsumerStats stats = stats_;
  for (const auto& [partition, assigned] : assigned_) {
    PartitionStats& one = stats.partitions[partition];
    one.committed = assigned.committed;
    one.position = assigned.prefix.position();
    one.unfinished = assigned.prefix.unfinished();
    one.held = assigned.held();
    one.log_end = assigned.log_end;
    if (one.log_end) one.lag = std::max<std::int64_t>(0, *one.log_end - assigned.prefix.prefix());
  }
  return stats;
}

}  // namespace weir
