// What an Agent is without its thread: inputs in turn, the gate, the entries on their way, the checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/account.h"
#include "agent/agent.h"
#include "agent/follower.h"
#include "agent/generator.h"
#include "base/log.h"
#include "client/log_entry.h"
#include "runtime/input_stream.h"

namespace weir::agent {

/// step() and finish() belong to one thread at a time; the rest may be called from any.
class Core final : private Follower::SourceTaker {
 public:
  Core(AgentSettings settings, std::unique_ptr<Producer> producer, runtime::FileSystem& files, const Clock& clock);
  Result<void> open();
  MonoTime step();
  void set_held(bool held);
  void stop_inputs();
  /// Reads nothing more; sends what was taken from standard input and waits for room, at most until `deadline`.
  void send_rest(MonoTime deadline);
  /// The last checkpoint, and what was rejected.
  void finish();

  bool ended() const;
  AgentStats stats() const;
  Producer& producer() { return *producer_; }
  const AgentSettings& settings() const { return settings_; }

 private:
  // -- SourceTaker
  bool source(const std::shared_ptr<Source>& source) override;
  bool take(const Entry& entry) override;
  void pass(std::uint64_t end) override;

  bool send(const Entry& entry, std::string value, std::string_view server_id, std::string_view level,
            Bytes read_bytes);
  /// True while entries may be read; sets how many.
  bool open_gate(Now now);
  void read_inputs(Now now);
  void read_stream();
  void read_generator(Now now);
  MonoTime next_step(Now now) const;
  /// False when it could not be written.
  bool write_checkpoint(Now now);
  void write_rejected();
  void note_pause(Now now);
  void publish(Now now);

  const AgentSettings settings_;
  const std::string host_name_;
  runtime::FileSystem& files_;
  const Clock& clock_;
  std::unique_ptr<Producer> producer_;
  const std::shared_ptr<Account> account_ = std::make_shared<Account>();
  RejectFile reject_file_;

  // -- of the stepping thread
  Follower follower_;
  std::optional<Generator> generator_;
  std::shared_ptr<Source> generator_source_;
  std::uint64_t generated_ = 0;
  std::optional<runtime::InputStream> stream_;
  std::shared_ptr<Source> stream_source_;
  std::optional<LineSplitter> stream_lines_;
  std::string stream_bytes_;  // read and not yet sent
  bool stream_ended_ = false;
  std::string buffer_;
  std::shared_ptr<Source> source_;  // of what is being taken
  client::LogEntryParser parser_;
  Now now_{};
  std::size_t room_ = 0;  // entries that may still be sent in this step
  bool full_ = false;     // the producer had no room
  bool closed_ = false;   // the gate, with hysteresis
  double ack_rate_ = 0;
  std::uint64_t rate_acked_ = 0;
  MonoTime rate_at_{};
  MonoTime next_scan_{};
  MonoTime next_checkpoint_{};
  std::string checkpoint_;          // as last written
  std::set<std::string> saved_;     // ids of the sources in it
  MonoTime checkpoint_retry_at_{};  // after a failure, not with every read
  bool source_waits_ = false;       // for the checkpoint
  std::optional<MonoTime> paused_since_;
  bool pause_said_ = false;
  log::Every checkpoint_log_{std::chrono::seconds(30)};

  // -- shown to others
  mutable std::mutex mutex_;
  bool held_ = false;
  bool inputs_stopped_ = false;
  bool inputs_through_ = false;
  bool source_waits_shown_ = false;
  std::optional<MonoTime> stopped_at_;
  Follower::Counts counts_;
  std::uint64_t generated_shown_ = 0;
  std::uint64_t unterminated_ = 0;
  std::uint64_t bad_utf8_ = 0;
  std::uint64_t stream_long_lines_ = 0;
  Duration paused_{};      // pauses that are over
  Duration paused_now_{};  // the one that is not
};

}  // namespace weir::agent
