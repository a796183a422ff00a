#include "client/consumer_core.h"

#include <algorithm>

#include "base/assert.h"

namespace weir {

using client::Assigned;
using client::ConsumerEvent;
using client::name_of;

namespace {

constexpr Duration kLookUp = std::chrono::seconds(3);           // per attempt; the group goes on meanwhile
constexpr Duration kLookUpLate = std::chrono::seconds(1);       // the same while other partitions' commits wait for it
constexpr Duration kRetry = std::chrono::milliseconds(500);     // between attempts
constexpr Duration kCommitAnswer = std::chrono::seconds(5);     // then the commit counts as failed
constexpr Duration kReadFirst = std::chrono::milliseconds(50);  // between looks whether all in memory was handed out
constexpr Duration kTick = std::chrono::milliseconds(5);

thread_local const ConsumerCore* running_hook = nullptr;

}  // namespace

ConsumerCore::ConsumerCore(ConsumerSettings settings, ConsumerHooks hooks,
                           std::unique_ptr<client::ConsumerTransport> transport, const Clock& clock)
    : settings_(std::move(settings)), hooks_(std::move(hooks)), clock_(clock), transport_(std::move(transport)) {
  in_force_ = transport_->in_force();
}

ConsumerCore::~ConsumerCore() = default;

// False, and not called, once hooks have ended.
template <typename Call>
bool ConsumerCore::hooked(Call call) {
  {
    std::lock_guard lock(mutex_);
    if (hooks_ended_) return false;
  }
  struct Restore {
    const ConsumerCore* outer;
    ~Restore() { running_hook = outer; }
  } restore{std::exchange(running_hook, this)};
  call();
  return true;
}

void ConsumerCore::end_hooks() {
  std::lock_guard lock(mutex_);
  hooks_ended_ = true;
}

bool ConsumerCore::in_hook() const { return running_hook == this; }

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
  const bool busy = revocation_ || leaving_;
  MonoTime next = now.mono + (busy ? kTick : std::chrono::milliseconds(100));
  if (!to_assign_.empty() && !revocation_) next = std::min(next, assign_at_);
  for (const auto& [partition, when] : out_of_range_) next = std::min(next, when);
  return next;
}

void ConsumerCore::handle(Now now, ConsumerEvent& event) {
  switch (event.kind) {
    case ConsumerEvent::Kind::kAssign: {
      to_assign_.insert(to_assign_.end(), event.partitions.begin(), event.partitions.end());
      assign_at_ = now.mono;
      answered_ = event.partitions.empty();
      if (answered_) transport_->start({});
      std::lock_guard lock(mutex_);
      ++stats_.rebalances;
      rebalancing_ = !answered_;
      if (answered_) ever_assigned_ = true;
      return;
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
        at->second.drop_returned();
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
}

void ConsumerCore::fail_for_good(Error error) {
  {
    std::lock_guard lock(mutex_);
    if (!failed_) failed_ = std::move(error);
  }
  data_.ring();
}

// Finds where each new partition starts, then begins reading it. One that cannot be asked for holds up neither the
// others nor the group: it is begun when its leader is back.
void ConsumerCore::try_assign(Now now) {
  if (to_assign_.empty() || now.mono < assign_at_ || revocation_) return;
  const auto known = transport_->look_up(to_assign_, answered_ ? kLookUpLate : kLookUp);
  assign_at_ = clock_.now().mono + kRetry;
  if (!known) {
    if (log_.allow(now.mono)) {
      log::warn("group {}: offsets of {} partitions cannot be read ({}); trying again", settings_.group_id,
                to_assign_.size(), known.error().message);
    }
    return;
  }
  if (closing()) return to_assign_.clear();  // since it was asked
  std::vector<Start> found;
  for (const auto& partition : *known) {
    const auto start = start_of(partition);
    if (!start) return to_assign_.clear();  // stopped for good: poll() says why
    found.push_back(*start);
    std::erase(to_assign_, partition.partition);
  }
  if (found.empty() && answered_) return;
  std::vector<client::StartAt> starts;
  {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto& [partition, committed, log_start, log_end] = (*known)[i];
      const Offset start = found[i].offset;
      starts.push_back({partition, start});
      auto [at, added] = assigned_.try_emplace(partition, ++assignments_, start, settings_);
      WEIR_ASSERT(added);
      at->second.committed = committed;
      // Stored, and ended before the commit: without this the group would be seen behind until something new comes.
      if (found[i].kept_elsewhere && start > committed.value_or(Offset{0})) to_commit_[partition] = start;
    }
    if (!answered_) {
      ever_assigned_ = true;
      rebalancing_ = false;
    }
  }
  answered_ = true;
  transport_->start(starts);
  data_.ring();
}

std::optional<ConsumerCore::Start> ConsumerCore::start_of(const AssignedPartition& partition) {
  std::optional<Offset> wanted = partition.committed;
  bool chosen = false;
  if (hooks_.on_assign) {
    Result<std::optional<Offset>> answer;
    if (!hooked([&] { answer = hooks_.on_assign(partition); })) return std::nullopt;
    if (!answer) {
      fail_for_good(answer.error());
      return std::nullopt;
    }
    chosen = answer->has_value();
    if (chosen) wanted = **answer;
  }
  const Offset first = partition.log_start.value_or(Offset{0});
  const Offset end = partition.log_end.value_or(first);
  if (wanted && *wanted < first) {
    const auto next = over_gap(partition.partition, *wanted, partition);
    return next ? std::optional(Start{*next, chosen}) : std::nullopt;
  }
  if (wanted && *wanted <= end) return Start{*wanted, chosen};
  if (wanted) {
    log::warn(
        "group {}: offset {} of {} is beyond the end of the log ({}): the log was made anew; auto.offset.reset decides",
        settings_.group_id, wanted->value, name_of(partition.partition), end.value);
  }
  switch (settings_.auto_offset_reset) {
    case OffsetReset::kEarliest: return Start{first};
    case OffsetReset::kLatest: return Start{end};
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
    if (at->second.ready() > 0) {  // read before it was deleted: not lost
      out_of_range_.emplace_back(partition, clock_.now().mono + kReadFirst);
      return;
    }
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
    if (const auto start = start_of(anew)) to = start->offset;
  }
  if (!to) return;
  if (*to < from) return start_anew(partition, *to);
  {
    std::lock_guard lock(mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end()) return;
    at->second.prefix.skip_to(*to);
  }
  transport_->seek(partition, *to);
  data_.ring();
}

// On a log made anew. What is in hands is of the old one: fenced, and no commit of it is taken for one of the new.
void ConsumerCore::start_anew(const TopicPartition& partition, Offset from) {
  {
    std::scoped_lock lock(reading_mutex_, mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end()) return;
    forget(at);
    to_commit_.erase(partition);
  }
  transport_->seek(partition, from);
  {
    std::lock_guard lock(mutex_);
    assigned_.try_emplace(partition, ++assignments_, from, settings_);
  }
  data_.ring();
}

// With both locks.
void ConsumerCore::forget(std::map<TopicPartition, Assigned>::iterator at) {
  stats_.handed_out_bytes -= at->second.prefix.bytes();
  ready_bytes_ -= at->second.ready_bytes();
  assigned_.erase(at);
}

void ConsumerCore::lose(const std::vector<TopicPartition>& partitions) {
  {
    std::lock_guard lock(mutex_);
    for (const auto& partition : partitions) {
      auto at = assigned_.find(partition);
      if (at != assigned_.end()) at->second.stopping = true;
    }
  }
  if (hooks_.on_revoke) hooked([&] { hooks_.on_revoke(partitions, true); });
  {
    std::scoped_lock lock(reading_mutex_, mutex_);
    ++stats_.rebalances;
    rebalancing_ = true;
    for (const auto& partition : partitions) {
      auto at = assigned_.find(partition);
      if (at != assigned_.end()) forget(at);
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
      if (const auto next = at->second.ask_for_prefix()) to_commit_[partition] = *next;
    }
    revocation.asked = true;
    revocation.stop_at = now.mono + kCommitAnswer;
    if (close_at_) revocation.stop_at = std::min(revocation.stop_at, *close_at_);
  }
  send_commits(now);
  {
    std::scoped_lock lock(reading_mutex_, mutex_);
    const bool waiting = std::any_of(
        revocation.partitions.begin(), revocation.partitions.end(),
        [&](const auto& partition) { return to_commit_.contains(partition) || committing_.contains(partition); });
    if (waiting && now.mono < revocation.stop_at) return;
    if (waiting && close_at_) final_commit_ok_ = false;
    for (const auto& partition : revocation.partitions) {
      auto at = assigned_.find(partition);
      if (at != assigned_.end()) forget(at);
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
    const Offset asked = assigned.asked.value_or(assigned.start);
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
