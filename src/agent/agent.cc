#include "agent/agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/core.h"
#include "base/log.h"
#include "client/producer_metrics.h"
#include "metrics/names.h"
#include "runtime/process.h"

namespace weir::agent {

Agent::Agent(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Agent::~Agent() { stop(Duration::zero()); }

Result<std::unique_ptr<Agent>> Agent::open(AgentSettings settings, std::unique_ptr<Producer> producer,
                                           runtime::FileSystem& files, const Clock& clock) {
  auto core = std::make_unique<Core>(std::move(settings), std::move(producer), files, clock);
  if (auto opened = core->open(); !opened) return tl::unexpected(opened.error());
  return std::unique_ptr<Agent>(new Agent(std::move(core)));
}

void Agent::start() {
  thread_ = std::thread([this] {
    runtime::name_thread("agent");
    while (!stopping_) {
      const MonoTime next = core_->step();
      // Short sleeps, so that stop() need not wake anybody.
      const Duration wait = next - system_clock().now().mono;
      if (wait > Duration::zero()) std::this_thread::sleep_for(std::min<Duration>(wait, std::chrono::milliseconds(20)));
    }
  });
}

MonoTime Agent::step() { return core_->step(); }
void Agent::hold() { core_->set_held(true); }
void Agent::release() { core_->set_held(false); }
void Agent::stop_inputs() { core_->stop_inputs(); }
bool Agent::ended() const { return core_->ended(); }
AgentStats Agent::stats() const { return core_->stats(); }
Producer& Agent::producer() { return core_->producer(); }

std::uint64_t Agent::stop(Duration drain) {
  std::lock_guard lock(stop_mutex_);
  if (left_) return *left_;
  const MonoTime deadline = system_clock().now().mono + drain;
  core_->stop_inputs();
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  core_->send_rest(deadline);
  core_->producer().close(std::max(Duration::zero(), deadline - system_clock().now().mono));
  core_->finish();
  hook_.reset();
  producer_hook_.reset();
  left_ = core_->stats().in_memory;
  return *left_;
}

void Agent::expose(Registry& registry, const std::string& client_id) {
  producer_hook_ = client::expose(core_->producer(), client_id, registry);
  hook_ = registry.on_collect([this, &registry] {
    using namespace metrics;
    const AgentStats stats = core_->stats();
    registry.counter(kAgentRead).raise_to(stats.read);
    registry.counter(kAgentOffered).raise_to(stats.offered);
    registry.counter(kAgentAcked).raise_to(stats.acked);
    for (const auto& [reason, count] : stats.shed) registry.counter(kAgentShed, {{"reason", reason}}).raise_to(count);
    for (const auto& [reason, count] : stats.rejected) {
      registry.counter(kAgentRejected, {{"reason", reason}}).raise_to(count);
    }
    registry.gauge(kAgentInMemory).set(double(stats.in_memory));
    registry.counter(kAgentReadBytes).raise_to(stats.read_bytes);
    registry.gauge(kAgentUnreadBytes).set(double(stats.unread_bytes));
    registry.gauge(kAgentFiles).set(double(stats.files));
    registry.gauge(kAgentDeletedOpenBytes).set(double(stats.deleted_open_bytes));
    registry.counter(kAgentTruncations).raise_to(stats.truncations);
    for (const auto& [reason, bytes] : stats.lost_bytes) {
      registry.counter(kAgentLostBytes, {{"reason", reason}}).raise_to(bytes);
    }
    const char* policy = core_->settings().long_lines == LongLines::kTruncate ? "truncated" : "skipped";
    registry.counter(kAgentLongLines, {{"policy", policy}}).raise_to(stats.long_lines);
    registry.counter(kAgentUnterminatedLines).raise_to(stats.unterminated);
    registry.counter(kAgentBadUtf8Bytes).raise_to(stats.bad_utf8_bytes);
    registry.gauge(kAgentPausedSeconds).set(to_seconds(stats.paused));
  });
}

}  // namespace weir::agent
