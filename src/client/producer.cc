#include "weir/producer.h"

#include <atomic>
#include <new>

#include "base/clock.h"
#include "client/kafka_settings.h"
#include "client/producer_core.h"
#include "client/step_thread.h"
#include "client/transport.h"

namespace weir {

namespace {

constexpr Duration kCloseGrace = std::chrono::milliseconds(200);  // for what is running when the deadline passes

}  // namespace

std::string_view to_string(SendOutcome outcome) {
  switch (outcome) {
    case SendOutcome::kAccepted: return "accepted";
    case SendOutcome::kFull: return "full";
    case SendOutcome::kClosed: return "closed";
    case SendOutcome::kRejected: return "rejected";
  }
  return "";
}

std::string_view to_string(ProducerState state) {
  switch (state) {
    case ProducerState::kOpen: return "open";
    case ProducerState::kBlocked: return "blocked";
    case ProducerState::kDraining: return "draining";
    case ProducerState::kClosed: return "closed";
  }
  return "";
}

struct Producer::Worker : client::StepThread {
  using StepThread::StepThread;
};

Result<std::unique_ptr<Producer>> Producer::open(const ProducerSettings& settings) {
  if (auto fine = client::check(settings); !fine) return tl::unexpected(fine.error());
  // The transport comes first and goes first, so the core it wakes is always there.
  auto target = std::make_shared<std::atomic<ProducerCore*>>(nullptr);
  auto transport = client::open_rdkafka_producer(settings, [target] {
    if (auto* core = target->load()) core->wake();
  });
  if (!transport) return tl::unexpected(transport.error());
  auto core = std::make_shared<ProducerCore>(settings, std::move(*transport), system_clock());
  target->store(core.get());
  return std::make_unique<Producer>(std::move(core), true);
}

Producer::Producer(std::shared_ptr<ProducerCore> core, bool threaded) : core_(std::move(core)) {
  if (threaded) worker_ = std::make_unique<Worker>(core_, "weir-producer");
}

Producer::~Producer() {
  if (core_->in_child()) {
    // The thread and maybe a lock's holder stayed in the parent: everything here is left as it is.
    if (worker_) (void)worker_.release();
    (void)new (std::nothrow) std::shared_ptr<ProducerCore>(std::move(core_));
    return;
  }
  close(Duration::zero());
  if (worker_) worker_->end(core_->in_callback());
}

SendResult Producer::send(Record& record, OnDelivery on_delivery) {
  const auto& settings = core_->settings();
  return core_->send(record, settings.when_full == WhenFull::kBlock ? settings.max_block : Duration::zero(),
                     std::move(on_delivery));
}

SendResult Producer::send(Record& record, Duration max_wait, OnDelivery on_delivery) {
  return core_->send(record, max_wait, std::move(on_delivery));
}

void Producer::consumed(const TopicPartition& partition, Offset next) { core_->consumed({{partition, next}}); }
void Producer::consumed(const std::map<TopicPartition, Offset>& next) { core_->consumed(next); }
void Producer::forget(const std::string& topic) { core_->forget(topic); }
void Producer::set_lag(std::optional<std::int64_t> records) { core_->set_lag(records); }
void Producer::apply(const Directive& directive) { core_->apply(directive); }

std::size_t Producer::flush(Duration deadline) {
  if (core_->in_child()) return 0;
  core_->request_flush();
  return core_->wait_flushed(worker_ && !core_->in_callback() ? deadline : Duration::zero());
}

std::size_t Producer::close(Duration deadline) {
  if (core_->in_child() || core_->closing()) return 0;
  core_->request_close(deadline);
  if (worker_ && !core_->in_callback())
    core_->wait_finished(std::min<Duration>(deadline, std::chrono::hours(24)) + kCloseGrace);
  return core_->undelivered();
}

ProducerStats Producer::stats() const { return core_->stats(); }
std::vector<SettingInForce> Producer::in_force() const { return core_->in_force(); }

}  // namespace weir
