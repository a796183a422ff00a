// The application's side of the core: reading, finishing, committing, holding. The group's side is in consumer_core.cc.
#include <algorithm>

#include "client/consumer_core.h"

namespace weir {

using client::Assigned;
using client::name_of;

namespace {

constexpr std::size_t kReadAhead = 1024;  // records of one partition taken from the client at once

}  // namespace

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
  std::size_t want = 0;
  std::lock_guard reading(reading_mutex_);
  {
    std::lock_guard lock(mutex_);
    auto at = assigned_.find(partition);
    if (at == assigned_.end() || at->second.held()) return 0;
    Assigned& assigned = at->second;
    assigned.hand_out_returned(room, out);
    // Half of the memory is for the prefetch and what is read ahead. Something may always be handed out, whatever its
    // size.
    if (stats_.handed_out_bytes >= settings_.buffer_memory / 2) room = 0;
    room = std::min(room, settings_.high_watermark - std::min(settings_.high_watermark, assigned.prefix.unfinished()));
    // Read ahead of what is handed out: one busy partition among idle ones is fetched only every fetch.max.wait.ms once
    // its prefetch was full, so that alone would not keep a fast application going.
    want = room - std::min(room, assigned.ready());
    const Bytes ahead = settings_.buffer_memory / 4;
    if (ready_bytes_ < ahead && assigned.ready_bytes() < ahead / 2) want = std::max(want, kReadAhead);
  }
  if (room == 0) return out.size() - before;

  std::vector<ConsumedRecord> read;
  if (want > 0) transport_->read(partition, want, read);
  const auto end = read.empty() ? transport_->end_reached(partition) : std::nullopt;

  std::lock_guard lock(mutex_);
  auto at = assigned_.find(partition);
  if (at == assigned_.end() || at->second.stopping) return out.size() - before;
  Assigned& assigned = at->second;
  const Bytes ready_before = assigned.ready_bytes();
  const Bytes handed_out_before = assigned.prefix.bytes();
  const std::size_t room_before = room;
  for (auto& record : read) assigned.add(std::move(record));
  assigned.hand_out_ready(room, out);
  ready_bytes_ += assigned.ready_bytes() - ready_before;
  stats_.handed_out_bytes += assigned.prefix.bytes() - handed_out_before;
  stats_.fetched += room_before - room;
  if (end && assigned.ready() == 0 && *end > assigned.prefix.position()) {
    assigned.prefix.skip_to(*end);
    work_.ring();
  }
  if (assigned.update_marks()) ++stats_.holds;
  return out.size() - before;
}

// With the lock, after records of so many bytes were finished.
void ConsumerCore::finished_some(Assigned& assigned, Bytes bytes) {
  const bool was_held = assigned.held() || stats_.handed_out_bytes >= settings_.buffer_memory / 2;
  stats_.handed_out_bytes -= bytes;
  assigned.update_marks();
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
    assigned.drop_returned_before(next);
    stats_.finished += assigned.prefix.finish_before(next);
    finished_some(assigned, before - assigned.prefix.bytes());
    // Control records behind the last record are passed too, or the group would never be seen at the end.
    Offset target = next;
    if (assigned.prefix.unfinished() == 0) target = std::max(next, assigned.prefix.prefix());
    // Below the start, it is of an earlier assignment.
    if (assigned.asked ? target > *assigned.asked : target >= assigned.start) {
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
      if (const auto next = assigned.ask_for_prefix()) to_commit_[partition] = *next;
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
      if (at != assigned_.end() && at->second.number == record.assignment) at->second.give_back(std::move(record));
    }
  }
  data_.ring();
  work_.ring();
}

}  // namespace weir
