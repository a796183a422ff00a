#include "weir/producer.h"

#include <atomic>
#include <future>
#include <thread>

#include "base/clock.h"
#include "client/blocked_signals.h"
#include "client/kafka_settings.h"
#include "client/producer_core.h"
#include "client/transport.h"
#include "runtime/process.h"

namespace weir {

namespace {

constexpr Duration kCloseGrace = std::chrono::milliseconds(200);  // for what is running when the deadline passes
constexpr Duration kEndGrace = std::chrono::seconds(1);           // for the client library's own threads to end

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

/// Steps the core until it is closed and everything has been reported.
struct Producer::Worker {
  std::thread thread;
  std::future<void> ended;
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
  if (!threaded) return;
  core_->set_threaded();
  worker_ = std::make_unique<Worker>();
  client::BlockedSignals blocked;
  std::promise<void> end;
  worker_->ended = end.get_future();
  worker_->thread = std::thread([core = core_, end = std::move(end)]() mutable {
    runtime::name_thread("weir-producer");
    while (!core->finished()) {
      const MonoTime next = core->step();
      core->wait_for_work(std::min(next, system_clock().now().mono + std::chrono::milliseconds(100)));
    }
    core->release_transport();
    end.set_value();
  });
}

Producer::~Producer() {
  if (core_->in_child()) {
    // The thread and maybe a lock's holder stayed in the parent: everything here is left as it is.
    if (worker_) (void)worker_.release();
    (void)new std::shared_ptr<ProducerCore>(std::move(core_));
    return;
  }
  close(Duration::zero());
  if (!worker_) return;
  // A callback that never returns, or a client library that does not end, keeps the thread; it owns all it needs.
  if (!core_->in_callback() && worker_->ended.wait_for(kEndGrace) == std::future_status::ready) {
    worker_->thread.join();
  } else {
    worker_->thread.detach();
  }
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
