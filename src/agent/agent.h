// The agent: reads logs and gives them to a producer. The file is the buffer: while the gate is closed nothing is read.
//
//   files, stdin, generator --lines--> entry (topic, lane, headers) --> Producer --> Kafka
//        ^   stand still while enough waits                                |
//        '---- positions move, checkpoint is written <--- acknowledgements-'
//
//   read = acked + spooled + in memory + shed(reason) + rejected(reason)
//
// Every record carries `weir.source` (a random id of its file or stream) and `weir.pos` (byte offset of the line's
// first byte, or its number from the generator), so a resend after a crash is recognised at the store. Order is kept
// per source and topic. One thread of ours reads and sends; every function may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "metrics/tally.h"
#include "weir/flow.h"
#include "weir/metrics.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace weir::runtime {
class FileSystem;
}

namespace weir::agent {

/// What is done with a line above the limit.
enum class LongLines : std::uint8_t {
  kTruncate,  ///< its first `line_limit` bytes are sent, marked `weir.truncated`
  kSkip,      ///< it is not sent, and counted
};
/// What becomes the record's key.
enum class KeyBy : std::uint8_t { kServerId, kSource, kNone };

struct AgentSettings {
  /// Files or directories to follow. A directory means the regular text files in it and up to three levels below,
  /// compressed and binary ones left out. A file need not exist yet (but with `once` it must, and be readable); one
  /// that has several names is read once.
  std::vector<std::filesystem::path> paths;
  bool standard_input = false;
  int input_descriptor = 0;        ///< what standard input is
  double generate_per_second = 0;  ///< synthetic entries; 0: none
  /// Read what is there and end: see ended().
  bool once = false;

  std::string topic = "logs";
  std::string urgent_topic = "logs_error";  ///< ERROR, FATAL, CRITICAL, ALERT, EMERG: in the high lane
  KeyBy key = KeyBy::kServerId;
  std::string host_name;  ///< `server_id` of text lines; empty: the machine's name

  /// Keeps the checkpoint and what was rejected; made when missing. Empty: positions are not kept.
  std::filesystem::path state_directory;
  /// Files and directories of weir's own, which it must not read: its data, what it prints into.
  std::vector<std::filesystem::path> own_paths;

  /// Without the line end; kLeastLineLimit to kMostLineLimit. A line of this default fits the default max.request.size
  /// even when JSON writes each of its bytes as six (\u0000).
  Bytes line_limit = 160 * kKiB;
  LongLines long_lines = LongLines::kTruncate;
  Duration flush_after =
      std::chrono::seconds(5);  ///< a last line without its line end is sent after so long without growth
  Duration scan_period = std::chrono::seconds(1);  ///< how often new and rotated files are looked for
  Duration checkpoint_period = std::chrono::seconds(1);
  /// A rotated file is let go when it has been read to its end and not grown for this long.
  Duration close_rotated_after = std::chrono::seconds(5);
  /// Most unread bytes of deleted files to hold open; the oldest is given up first, and said. Empty: all of them.
  std::optional<Bytes> deleted_limit;
  /// Files held open at most, from 1; when there are more they are read in turn, which is said. The rest of the process
  /// needs descriptors too.
  std::size_t most_files = 100'000;
  /// Readers stand still while this much time's worth of records waits in the producer.
  Duration queue_target = std::chrono::milliseconds(100);
};

/// What `line_limit` may be: every reader's buffer must hold a line.
inline constexpr Bytes kLeastLineLimit = 64;
inline constexpr Bytes kMostLineLimit = 16 * kMiB;

struct AgentStats {
  std::uint64_t offered = 0;  ///< due by the schedule (generator) or read (files, stdin)
  std::uint64_t read = 0;
  std::uint64_t behind = 0;  ///< offered - read
  std::uint64_t acked = 0;
  std::uint64_t in_memory = 0;  ///< read and not yet acknowledged or rejected
  std::uint64_t spooled = 0;    ///< always 0: inputs that can wait need no spool
  metrics::Reasons shed;
  metrics::Reasons rejected;

  Bytes read_bytes = 0;           ///< of entries
  Bytes unread_bytes = 0;         ///< known to be in files behind the read position, also in those that wait
  Bytes deleted_open_bytes = 0;   ///< of those, in deleted files held open
  std::size_t files = 0;          ///< open now
  std::uint64_t truncations = 0;  ///< files found truncated or rewritten in place
  /// Known to have gone before they were read, in bytes: "truncated" (cut or rewritten in place), "given_up" (deleted
  /// files above `deleted_limit`, and those deleted while they waited for their turn to be open).
  metrics::Reasons lost_bytes;
  std::uint64_t long_lines = 0;    ///< truncated or skipped, as `long_lines` says
  std::uint64_t unterminated = 0;  ///< last lines sent without their line end
  std::uint64_t bad_utf8_bytes = 0;
  Duration paused{};            ///< readers stood still
  Bytes buffer_bytes = 0;       ///< held by readers and producer
  Bytes peak_buffer_bytes = 0;  ///< most so far
  LimitState limit;             ///< of the producer
  std::string stuck;            ///< Empty, or why nothing can move until that ends: "no broker answered".

  metrics::AgentTally tally() const { return {read, acked, spooled, in_memory, shed, rejected}; }
};

/// Why `path`, a pipe or a socket, is no input, and what to do instead.
std::string not_a_file(const std::filesystem::path& path);

class Core;

class Agent {
 public:
  /// Reads the checkpoint and looks at the inputs. `files` and `clock` outlive the agent. Fails on settings that cannot
  /// work, on a file that does not exist with `once`, and on a checkpoint that cannot be read.
  static Result<std::unique_ptr<Agent>> open(AgentSettings settings, std::unique_ptr<Producer> producer,
                                             runtime::FileSystem& files, const Clock& clock);
  /// Memory its readers use at most: leave that much of `buffer.memory` out of the producer's.
  static Bytes reader_memory(const AgentSettings& settings);
  /// stop() with a deadline of zero when it was not called.
  ~Agent();

  /// Starts the thread.
  void start();
  /// Does what can be done now; returns when to come back at the latest. For tests that drive the agent without its
  /// thread.
  MonoTime step();

  /// Nothing is read between these two; files are watched all the same. Before start(): the topics are not there yet.
  void hold();
  void release();

  /// Nothing more is read or offered from now on. What was read goes on its way.
  void stop_inputs();
  /// stop_inputs(), waits up to `drain` until everything read has been acknowledged, writes the checkpoint, closes the
  /// producer. Returns how many entries stay in memory without an acknowledgement: those of files will be read again at
  /// the next start. A second call returns the same.
  std::uint64_t stop(Duration drain);
  /// Every input has ended (stdin at its end, `once` read through) and everything read has been acknowledged or
  /// rejected.
  bool ended() const;

  AgentStats stats() const;
  Producer& producer();
  /// The same as metrics (weir_agent_*), and those of its producer; the registry outlives the agent.
  void expose(Registry& registry, const std::string& client_id = "weir-agent");

 private:
  explicit Agent(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::mutex stop_mutex_;
  std::optional<std::uint64_t> left_;
  Registry::Hook hook_;
  Registry::Hook producer_hook_;
};

}  // namespace weir::agent
