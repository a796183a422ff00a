// The loops around the core: sockets in, effects out.
//
//   io loops: frames, decoding, CRC, encoding, sockets     num.network.threads; 1 shares the core loop's thread
//   core loop: Core                                         one
//   log loops: fdatasync, unlinking                         num.io.threads
//
// Work goes from loop to loop by dispatch(), which is a plain call when both are the same thread: the code does not
// know how many there are.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "broker/core.h"
#include "broker/request_queue.h"
#include "runtime/event_loop.h"
#include "runtime/tcp.h"
#include "weir/metrics.h"

namespace weir::broker {

class IoLoop;
class ServerMetrics;

/// Owned by whoever starts it; start() and stop() from that thread.
class Server {
 public:
  /// Both must outlive the server.
  Server(Core& core, Registry& registry);
  ~Server();

  /// Binds, tells the core its address and serves from then on.
  Result<runtime::Address> start();
  /// Answers what can be answered, syncs everything appended, ends all connections and loops. Blocks on the disk.
  void stop();

  // ---- For the io loops, from any of them ---------------------------------------------------------------------------

  void to_core(Request request);
  void gone(ConnectionId connection);
  RequestId next_request_id() { return RequestId(++last_request_); }
  /// Counts one more connection; false when there are max.connections, of all loops together.
  bool admit_connection();
  void release_connection() { --connections_; }
  RequestQueue& queue() { return queue_; }
  ServerMetrics& metrics() { return *metrics_; }
  const BrokerConfig& config() const { return config_; }

 private:
  void carry_out(Effects effects);
  void run_sync(Sync sync);
  void arm_timer();
  void on_timer();
  runtime::EventLoop& log_loop(LogId log) { return *log_loops_[log.value % log_loops_.size()]; }
  IoLoop& io_of(ConnectionId connection);

  Core& core_;
  const BrokerConfig config_;  // as at the start: what io loops read
  RequestQueue queue_;
  std::atomic<std::uint64_t> last_request_{0};
  std::atomic<std::int64_t> connections_{0};
  std::unique_ptr<ServerMetrics> metrics_;
  std::unique_ptr<runtime::EventLoop> core_loop_;
  std::vector<std::unique_ptr<runtime::EventLoop>> network_loops_;  // empty when the core loop does it
  std::vector<std::unique_ptr<runtime::EventLoop>> log_loops_;
  std::vector<std::unique_ptr<IoLoop>> io_;
  std::unique_ptr<runtime::Listener> listener_;
  std::size_t next_io_ = 0;  // core loop: accepts
  runtime::TimerId timer_ = runtime::kNoTimer;
  MonoTime armed_for_ = MonoTime::max();
  std::uint32_t next_chore_ = 0;
  bool stopping_ = false;  // core loop: syncs are run in place from now on
  bool running_ = false;
};

}  // namespace weir::broker
