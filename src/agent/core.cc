#include "agent/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/process.h"

namespace weir::agent {

namespace {
constexpr Bytes kReadBuffer = 256 * kKiB;
constexpr double kFewestWaiting = 200;
constexpr double kMostWaiting = 50'000;
constexpr Duration kGateLook = std::chrono::milliseconds(2);
constexpr Duration kStreamLook = std::chrono::milliseconds(5);
constexpr Duration kHeldLook = std::chrono::milliseconds(20);
constexpr Duration kRatePeriod = std::chrono::milliseconds(100);
constexpr Duration kPauseWorthSaying = std::chrono::seconds(5);
constexpr Duration kCheckpointRetry = std::chrono::seconds(1);

Bytes buffer_size(const AgentSettings& settings) { return std::max(kReadBuffer, settings.line_limit + 4 * kKiB); }

runtime::Path checkpoint_path(const AgentSettings& settings) { return settings.state_directory / "checkpoint.json"; }
}  // namespace

Bytes Agent::reader_memory(const AgentSettings& settings) {
  return buffer_size(settings) * (settings.standard_input ? 3 : 1);
}

Core::Core(AgentSettings settings, std::unique_ptr<Producer> producer, runtime::FileSystem& files, const Clock& clock)
    : settings_(std::move(settings)),
      host_name_(settings_.host_name.empty() ? runtime::host_name() : settings_.host_name),
      files_(files),
      clock_(clock),
      producer_(std::move(producer)),
      reject_file_(files, settings_.state_directory / "rejected.jsonl"),
      follower_(settings_, files) {
  buffer_.resize(buffer_size(settings_));
}

Result<void> Core::open() {
  if (settings_.line_limit < kLeastLineLimit || settings_.line_limit > kMostLineLimit) {
    return fail(ErrorKind::kInvalid, "line_limit must be from 64B to 16MiB");
  }
  if (settings_.paths.empty() && !settings_.standard_input && settings_.generate_per_second <= 0) {
    return fail(ErrorKind::kInvalid, "the agent has no input: name a file, a directory, '-' or a rate to generate");
  }
  const Now now = clock_.now();
  std::vector<FileMark> marks;
  if (!settings_.state_directory.empty()) {
    if (auto made = files_.make_directories(settings_.state_directory); !made) return made;
    auto loaded = load_checkpoint(files_, checkpoint_path(settings_));
    if (!loaded) return tl::unexpected(loaded.error());
    marks = std::move(*loaded);
  }
  if (settings_.standard_input) {
    stream_.emplace(settings_.input_descriptor);
    stream_source_ = std::make_shared<Source>(random_source_id(), "stdin", 0);
    stream_lines_.emplace(settings_.line_limit, settings_.long_lines, 0);
  }
  if (settings_.generate_per_second > 0) {
    generator_.emplace(settings_.generate_per_second, now.mono);
    generator_source_ = std::make_shared<Source>(random_source_id(), "generator", 0);
  }
  next_scan_ = now.mono + settings_.scan_period;
  rate_at_ = now.mono;
  auto opened = follower_.open(std::move(marks), now.mono);
  if (opened) write_checkpoint(now);
  publish(now);
  return opened;
}

// ---- One step ------------------------------------------------------------------------------------------------------

MonoTime Core::step() {
  const Now now = clock_.now();
  now_ = now;
  bool stopped;
  bool held;
  {
    std::lock_guard lock(mutex_);
    stopped = inputs_stopped_;
    held = held_;
  }
  if (!stopped) {
    // Also while nothing may be read: a file that comes and goes behind a closed gate must be known.
    if (now.mono >= next_scan_) {
      follower_.scan(now.mono);
      next_scan_ = now.mono + settings_.scan_period;
    }
    if (!held && open_gate(now)) read_inputs(now);
    note_pause(now);
  }
  if (now.mono >= next_checkpoint_) {
    write_checkpoint(now);
    next_checkpoint_ = now.mono + settings_.checkpoint_period;
  }
  write_rejected();
  publish(now);
  if (held) return now.mono + kHeldLook;
  return stopped ? now.mono + kStreamLook : next_step(now);
}

MonoTime Core::next_step(Now now) const {
  if (closed_ || full_) return now.mono + kGateLook;
  MonoTime next = std::min({follower_.next_look(), next_scan_, next_checkpoint_});
  if (generator_) next = std::min(next, generator_->due_at(generated_));
  if (stream_ && !stream_ended_) next = std::min(next, now.mono + kStreamLook);
  return next;
}

bool Core::open_gate(Now now) {
  const ProducerStats stats = producer_->stats();
  if (const Duration elapsed = now.mono - rate_at_; elapsed >= kRatePeriod) {
    ack_rate_ += 0.3 * (double(stats.acked - rate_acked_) / to_seconds(elapsed) - ack_rate_);
    rate_acked_ = stats.acked;
    rate_at_ = now.mono;
  }
  const auto high =
      std::size_t(std::clamp(ack_rate_ * to_seconds(settings_.queue_target), kFewestWaiting, kMostWaiting));
  closed_ = closed_ ? stats.waiting > high / 2 : stats.waiting >= high;
  room_ = closed_ ? 0 : high - stats.waiting;
  full_ = false;
  return !closed_;
}

void Core::read_inputs(Now now) {
  if (generator_) read_generator(now);
  if (stream_ && !full_ && room_ > 0) read_stream();
  if (!full_ && room_ > 0) follower_.read(now.mono, buffer_, *this);
}

void Core::read_generator(Now now) {
  source(generator_source_);
  for (const std::uint64_t due = generator_->due(now.mono); generated_ < due && room_ > 0 && !full_; ++generated_) {
    const auto synthetic = Generator::entry(generated_);
    std::string value;
    client::append_log_entry(value, synthetic.server_id, synthetic.level, synthetic.message, to_unix_ms(now_.wall));
    const Bytes bytes = value.size();
    const Entry entry{.position = generated_, .end = generated_ + 1};
    if (!send(entry, std::move(value), synthetic.server_id, synthetic.level, bytes)) return;
  }
}

void Core::read_stream() {
  if (!stream_ended_ && stream_bytes_.size() < buffer_.size()) {
    const auto got = stream_->read(std::as_writable_bytes(std::span(buffer_)), Duration::zero());
    if (!got) log::warn("standard input: {}", got.error().message);
    if (!got || (*got && **got == 0)) stream_ended_ = true;
    if (got && *got) stream_bytes_.append(buffer_, 0, **got);
  }
  if (stream_bytes_.empty()) return;
  source(stream_source_);
  const std::uint64_t long_before = stream_lines_->long_lines();
  stream_bytes_.erase(0, stream_lines_->split(stream_bytes_, *this));
  if (long_before == 0 && stream_lines_->long_lines() > 0) {
    log::warn("{}", long_line_notice("standard input", stream_lines_->long_line_at(), settings_));
  }
  if (!stream_ended_ || stream_bytes_.find('\n') != std::string::npos || full_ || room_ == 0) return;
  if (stream_lines_->flush(stream_bytes_, *this)) stream_bytes_.clear();
}

// ---- Entries -------------------------------------------------------------------------------------------------------

// A source must be on disk under its id before the first record carries it: after a crash the file would be read again
// under another one, and nobody could tell the records from new ones.
bool Core::source(const std::shared_ptr<Source>& source) {
  now_ = clock_.now();
  const bool of_this_run = source == generator_source_ || source == stream_source_;
  if (!of_this_run && !settings_.state_directory.empty() && !saved_.contains(source->id()) &&
      (now_.mono < checkpoint_retry_at_ || !write_checkpoint(now_))) {
    source_waits_ = true;
    return false;
  }
  source_ = source;
  return true;
}

void Core::pass(std::uint64_t end) { source_->pass(end); }

bool Core::take(const Entry& entry) {
  if (room_ == 0 || full_) return false;
  const Bytes bytes = entry.end - entry.position;
  const auto first = entry.text.find_first_not_of(" \t");
  if (first != std::string_view::npos && entry.text[first] == '{' && !entry.truncated) {
    if (const auto ready = parser_.parse(entry.text)) {
      return send(entry, std::string(entry.text), ready->server_id, ready->level, bytes);
    }
  }
  std::string value;
  const std::string_view level = client::level_of(entry.text);
  const std::size_t bad = client::append_log_entry(value, host_name_, level, entry.text, to_unix_ms(now_.wall));
  if (!send(entry, std::move(value), host_name_, level, bytes)) return false;
  if (bad > 0 || entry.unterminated) {
    std::lock_guard lock(mutex_);
    bad_utf8_ += bad;
    unterminated_ += entry.unterminated ? 1 : 0;
  }
  return true;
}

bool Core::send(const Entry& entry, std::string value, std::string_view server_id, std::string_view level,
                Bytes read_bytes) {
  const bool urgent = client::is_urgent(level);
  Record record{.topic = urgent ? settings_.urgent_topic : settings_.topic,
                .value = std::move(value),
                .timestamp = now_.wall,
                .lane = urgent ? Lane::kHigh : Lane::kNormal};
  if (settings_.key == KeyBy::kServerId) record.key = std::string(server_id);
  if (settings_.key == KeyBy::kSource) record.key = source_->id();
  record.headers.reserve(4);
  record.headers.push_back({std::string(client::kSourceHeader), source_->id()});
  record.headers.push_back({std::string(client::kPositionHeader), std::to_string(entry.position)});
  if (entry.truncated) record.headers.push_back({std::string(client::kTruncatedHeader), "1"});
  if (entry.unterminated) record.headers.push_back({std::string(client::kUnterminatedHeader), "1"});

  const std::uint64_t number = source_->admit(entry.end);
  account_->read(read_bytes);
  const SendResult sent =
      producer_->send(record, Duration::zero(), [account = account_, source = source_, number](Delivery& delivery) {
        account->settle(*source, number, delivery);
      });
  switch (sent.outcome) {
    case SendOutcome::kAccepted: break;
    case SendOutcome::kRejected:
      account_->reject(*source_, number, sent.reason, "refused by the producer", record);
      break;
    case SendOutcome::kFull:
    case SendOutcome::kClosed:
      account_->unread(read_bytes);
      source_->take_back();
      full_ = true;
      return false;
  }
  --room_;
  return true;
}

// ---- Keeping -------------------------------------------------------------------------------------------------------

bool Core::write_checkpoint(Now now) {
  if (settings_.state_directory.empty() || settings_.paths.empty()) return true;
  const std::vector<FileMark> marks = follower_.marks();
  write_rejected();  // the positions may have passed them, and nobody reads them again
  std::string text = to_json(marks);
  if (text == checkpoint_) {
    source_waits_ = false;  // what waited is gone
    return true;
  }
  // An old checkpoint is safe: it sends again what is already there, and the store drops it.
  if (const auto done = files_.replace(checkpoint_path(settings_), as_bytes(text)); !done) {
    if (checkpoint_log_.allow(now.mono)) {
      log::warn("{}: positions are not kept, and new files wait until they are: {}",
                checkpoint_path(settings_).string(), done.error().message);
    }
    checkpoint_retry_at_ = now.mono + kCheckpointRetry;
    return false;
  }
  checkpoint_retry_at_ = {};
  source_waits_ = false;
  checkpoint_ = std::move(text);
  saved_.clear();
  for (const FileMark& mark : marks) saved_.insert(mark.source);
  return true;
}

void Core::write_rejected() {
  const auto rejected = account_->take_rejected();
  if (rejected.empty()) return;
  for (const RejectedEntry& entry : rejected) {
    log::warn("{} at {}: rejected ({}): {}", entry.name, entry.position, entry.reason, entry.detail);
  }
  if (!settings_.state_directory.empty()) reject_file_.write(rejected);
}

void Core::note_pause(Now now) {
  const bool paused = closed_ || full_;
  if (paused && !paused_since_) paused_since_ = now.mono;
  if (!paused_since_) return;
  const Duration so_far = now.mono - *paused_since_;
  if (so_far >= kPauseWorthSaying && !std::exchange(pause_said_, true)) {
    log::info("agent: readers stand still: {}", producer_->stats().limit.why);
  }
  if (paused) return;
  if (std::exchange(pause_said_, false)) log::info("agent: reading again after {:.1f} s", to_seconds(so_far));
  paused_since_.reset();
  std::lock_guard lock(mutex_);
  paused_ += so_far;
}

void Core::publish(Now now) {
  std::lock_guard lock(mutex_);
  counts_ = follower_.counts();
  source_waits_shown_ = source_waits_;
  generated_shown_ = generated_;
  paused_now_ = paused_since_ ? now.mono - *paused_since_ : Duration::zero();
  stream_long_lines_ = stream_lines_ ? stream_lines_->long_lines() : 0;
  inputs_through_ = !generator_ && (settings_.paths.empty() || follower_.through()) &&
                    (!stream_ || (stream_ended_ && stream_bytes_.empty()));
}

void Core::set_held(bool held) {
  std::lock_guard lock(mutex_);
  held_ = held;
}

void Core::stop_inputs() {
  const MonoTime now = clock_.now().mono;
  std::lock_guard lock(mutex_);
  if (std::exchange(inputs_stopped_, true)) return;
  stopped_at_ = now;
}

void Core::send_rest(MonoTime deadline) {
  if (!stream_ || stream_bytes_.empty()) return;
  stream_ended_ = true;
  while (true) {
    room_ = stream_bytes_.size() + 1;
    full_ = false;
    read_stream();
    if (stream_bytes_.empty() || clock_.now().mono >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Nobody can read these again.
  for (; !stream_bytes_.empty();
       stream_bytes_.erase(0, std::min(stream_bytes_.find('\n'), stream_bytes_.size() - 1) + 1)) {
    account_->shed("stopped");
  }
}

void Core::finish() {
  const Now now = clock_.now();
  write_rejected();
  write_checkpoint(now);
  publish(now);
}

bool Core::ended() const {
  {
    std::lock_guard lock(mutex_);
    if (!inputs_through_) return false;
  }
  return account_->tally().in_memory == 0;
}

AgentStats Core::stats() const {
  const MonoTime now = clock_.now().mono;
  const ProducerStats producer = producer_->stats();
  metrics::AgentTally tally = account_->tally();
  AgentStats stats;
  stats.read = tally.read;
  stats.acked = tally.acked;
  stats.in_memory = tally.in_memory;
  stats.spooled = tally.spooled;
  stats.shed = std::move(tally.shed);
  stats.rejected = std::move(tally.rejected);
  stats.read_bytes = account_->read_bytes();
  stats.limit = producer.limit;
  const bool silent = producer.state == ProducerState::kBlocked && tally.in_memory > 0;
  const Bytes readers = Agent::reader_memory(settings_);
  stats.buffer_bytes = producer.buffer_bytes + readers;
  stats.peak_buffer_bytes = producer.peak_buffer_bytes + readers;

  std::lock_guard lock(mutex_);
  if (silent || held_) {
    stats.stuck = "no broker answered";
  } else if (source_waits_shown_ && stats.in_memory == 0) {
    stats.stuck = "the checkpoint could not be written";
  }
  stats.unread_bytes = counts_.unread_bytes;
  stats.deleted_open_bytes = counts_.deleted_open_bytes;
  stats.files = counts_.files;
  stats.truncations = counts_.truncations;
  stats.lost_bytes = counts_.lost_bytes;
  stats.long_lines = counts_.long_lines + stream_long_lines_;
  stats.unterminated = unterminated_;
  stats.bad_utf8_bytes = bad_utf8_;
  stats.paused = paused_ + paused_now_;
  if (generator_) {
    const std::uint64_t due = generator_->due(stopped_at_.value_or(now));
    stats.behind = due > generated_shown_ ? due - generated_shown_ : 0;
  }
  stats.offered = stats.read + stats.behind;
  return stats;
}

}  // namespace weir::agent
