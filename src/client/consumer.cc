#include "weir/consumer.h"

#include <atomic>
#include <new>

#include "base/clock.h"
#include "client/consumer_core.h"
#include "client/kafka_settings.h"
#include "client/step_thread.h"
#include "client/transport.h"

namespace weir {

namespace {

constexpr Duration kCloseGrace = std::chrono::milliseconds(200);  // for what is running when the deadline passes

}  // namespace

struct Consumer::Worker : client::StepThread {
  using StepThread::StepThread;
};

Result<std::unique_ptr<Consumer>> Consumer::open(const ConsumerSettings& settings, ConsumerHooks hooks) {
  if (auto fine = client::check(settings); !fine) return tl::unexpected(fine.error());
  // The transport comes first and goes first, so the core it wakes is always there.
  auto target = std::make_shared<std::atomic<ConsumerCore*>>(nullptr);
  auto transport = client::open_rdkafka_consumer(settings, [target] {
    if (auto* core = target->load()) core->wake();
  });
  if (!transport) return tl::unexpected(transport.error());
  auto core = std::make_shared<ConsumerCore>(settings, std::move(hooks), std::move(*transport), system_clock());
  target->store(core.get());
  return std::make_unique<Consumer>(std::move(core), true);
}

Consumer::Consumer(std::shared_ptr<ConsumerCore> core, bool threaded) : core_(std::move(core)) {
  if (threaded) worker_ = std::make_unique<Worker>(core_, "weir-consumer");
}

Consumer::~Consumer() {
  if (core_->in_child()) {
    // The thread and maybe a lock's holder stayed in the parent: everything here is left as it is.
    if (worker_) (void)worker_.release();
    (void)new (std::nothrow) std::shared_ptr<ConsumerCore>(std::move(core_));
    return;
  }
  close(Duration::zero());
  core_->end_hooks();
  if (worker_) worker_->end(core_->in_hook());
}

Result<std::vector<ConsumedRecord>> Consumer::poll(Duration wait) { return core_->poll(wait); }

void Consumer::finish(const ConsumedRecord& record) {
  core_->finish(record.partition, record.assignment, record.offset);
}
void Consumer::finish(const TopicPartition& partition, std::uint64_t assignment, Offset offset) {
  core_->finish(partition, assignment, offset);
}
std::optional<Offset> Consumer::finished_prefix(const TopicPartition& partition) const {
  return core_->finished_prefix(partition);
}

Result<void> Consumer::commit(const TopicPartition& partition, Offset next) { return core_->commit(partition, next); }
void Consumer::commit_finished() { core_->commit_finished(); }
Result<void> Consumer::flush_commits(Duration deadline) { return core_->flush_commits(deadline); }

void Consumer::hold(const TopicPartition& partition) { core_->hold(partition); }
void Consumer::release(const TopicPartition& partition) { core_->release(partition); }
void Consumer::give_back(std::vector<ConsumedRecord> records) { core_->give_back(std::move(records)); }

std::vector<TopicPartition> Consumer::assignment() const { return core_->assignment(); }
bool Consumer::assigned() const { return core_->assigned(); }
ConsumerStats Consumer::stats() const { return core_->stats(); }
std::vector<SettingInForce> Consumer::in_force() const { return core_->in_force(); }

bool Consumer::close(Duration deadline) {
  if (core_->in_child()) return false;
  core_->request_close(deadline);
  if (!worker_ || core_->in_hook()) return false;
  core_->wait_finished(std::min<Duration>(deadline, std::chrono::hours(24)) + kCloseGrace);
  core_->end_hooks();
  return core_->ended_well();
}

}  // namespace weir
