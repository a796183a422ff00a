#include "broker/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/log.h"
#include "broker/io_loop.h"
#include "broker/server_metrics.h"

namespace weir::broker {

using runtime::EventLoop;

Server::Server(Core& core, Registry& registry)
    : core_(core),
      config_(core.config()),
      queue_(static_cast<std::size_t>(config_.queued_max_requests), config_.queued_max_request_bytes),
      metrics_(std::make_unique<ServerMetrics>(registry, queue_, core.counts())),
      core_loop_(std::make_unique<EventLoop>("broker")) {
  for (std::int32_t i = 0; i < config_.num_network_threads && config_.num_network_threads > 1; ++i) {
    network_loops_.push_back(std::make_unique<EventLoop>(fmt::format("broker-io-{}", i)));
  }
  for (std::int32_t i = 0; i < config_.num_io_threads; ++i) {
    log_loops_.push_back(std::make_unique<EventLoop>(fmt::format("broker-log-{}", i)));
  }
  if (network_loops_.empty()) io_.push_back(std::make_unique<IoLoop>(*this, *core_loop_, 0));
  for (std::size_t i = 0; i < network_loops_.size(); ++i) {
    io_.push_back(std::make_unique<IoLoop>(*this, *network_loops_[i], i));
  }
}

Server::~Server() {
  if (running_) stop();
}

Result<runtime::Address> Server::start() {
  const HostPort& wanted = config_.listeners.front();
  const runtime::Address address{wanted.host.empty() ? "0.0.0.0" : wanted.host, wanted.port};
  auto listener = runtime::listen(
      *core_loop_, address, [this]() -> EventLoop& { return io_[next_io_++ % io_.size()]->loop(); },
      [this](std::shared_ptr<runtime::Connection> connection) {
        const auto io = std::ranges::find_if(io_, [&](const auto& one) { return &one->loop() == &connection->loop(); });
        WEIR_ASSERT(io != io_.end());
        (*io)->accept(std::move(connection));
      });
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  const runtime::Address bound = listener_->address();
  HostPort endpoint{bound.host, bound.port};
  if (bound.host == "0.0.0.0" || bound.host == "::") {
    endpoint.host = "127.0.0.1";
    if (!config_.advertised)
      log::warn("listening on every address but telling clients 127.0.0.1; set advertised.listeners");
  }
  if (config_.advertised) {
    endpoint = *config_.advertised;
    if (endpoint.port == 0) endpoint.port = bound.port;
  }
  core_.set_endpoint(endpoint);
  core_loop_->post([this] { arm_timer(); });
  for (const auto& loop : log_loops_) loop->start();
  for (const auto& loop : network_loops_) loop->start();
  core_loop_->start();
  running_ = true;
  return bound;
}

void Server::stop() {
  // No new requests; syncs run in place from here on, so that everything appended is durable and answered.
  core_loop_->call([this] {
    listener_.reset();
    stopping_ = true;
    core_loop_->cancel(timer_);
  });
  for (const auto& loop : log_loops_) loop->call([] {});
  core_loop_->call([this] { carry_out(core_.tick(core_loop_->now())); });
  for (const auto& io : io_) io->loop().call([&io] { io->stop(); });
  // What the kernel took is on its way; a client that does not read is not waited for.
  for (const auto& io : io_) io->loop().call([] {});
  for (const auto& loop : network_loops_) {
    loop->stop();
    loop->join();
  }
  core_loop_->call([] {});  // what the network loops sent last
  core_loop_->stop();
  core_loop_->join();
  for (const auto& loop : log_loops_) {
    loop->stop();
    loop->join();
  }
  running_ = false;
}

void Server::to_core(Request request) {
  // Shared, because work must be copyable.
  auto shared = std::make_shared<Request>(std::move(request));
  core_loop_->dispatch([this, shared] { carry_out(core_.handle(core_loop_->now(), std::move(*shared))); });
}

bool Server::admit_connection() {
  if (++connections_ <= config_.max_connections) return true;
  --connections_;
  return false;
}

void Server::gone(ConnectionId connection) {
  core_loop_->dispatch([this, connection] { carry_out(core_.disconnected(core_loop_->now(), connection)); });
}

IoLoop& Server::io_of(ConnectionId connection) { return *io_[IoLoop::index_of(connection)]; }

void Server::carry_out(Effects effects) {
  for (Effect& effect : effects) {
    if (auto* reply = std::get_if<Reply>(&effect)) {
      IoLoop& io = io_of(reply->connection);
      io.loop().dispatch([&io, reply = std::move(*reply)] { io.answer(reply); });
    } else if (auto* none = std::get_if<NoReply>(&effect)) {
      IoLoop& io = io_of(none->connection);
      io.loop().dispatch([&io, none = *none] { io.answer(none); });
    } else if (auto* poll = std::get_if<LongPoll>(&effect)) {
      IoLoop& io = io_of(poll->connection);
      io.loop().dispatch([&io, poll = *poll] { io.uncount(poll); });
    } else if (auto* close = std::get_if<CloseConnection>(&effect)) {
      IoLoop& io = io_of(close->connection);
      io.loop().dispatch([&io, close = *close] { io.close(close); });
    } else if (auto* sync = std::get_if<Sync>(&effect)) {
      run_sync(std::move(*sync));
    } else if (auto* chore = std::get_if<Chore>(&effect)) {
      log_loop(LogId(next_chore_++)).post([work = std::move(chore->work)] {
        if (auto done = work(); !done) log::warn("{}", done.error().message);
      });
    }
  }
  arm_timer();
}

void Server::run_sync(Sync sync) {
  const auto run = [this](const Sync& one) {
    const MonoTime start = system_clock().now().mono;
    Result<void> outcome = one.work ? one.work() : Result<void>();
    metrics_->flushed(system_clock().now().mono - start);
    if (!outcome) metrics_->log_error("fsync");
    return outcome;
  };
  if (stopping_) {  // At once, so that no sync is out when the loop ends.
    carry_out(core_.synced(core_loop_->now(), sync.log, run(sync)));
    return;
  }
  log_loop(sync.log).post([this, run, sync = std::move(sync)] {
    core_loop_->post(
        [this, log = sync.log, outcome = run(sync)] { carry_out(core_.synced(core_loop_->now(), log, outcome)); });
  });
}

void Server::arm_timer() {
  if (stopping_) return;
  const auto next = core_.next_deadline();
  if (!next || (timer_ != runtime::kNoTimer && armed_for_ <= *next)) return;
  if (timer_ != runtime::kNoTimer) core_loop_->cancel(timer_);
  armed_for_ = *next;
  timer_ = core_loop_->call_at(*next, [this] { on_timer(); });
}

void Server::on_timer() {
  timer_ = runtime::kNoTimer;
  carry_out(core_.tick(core_loop_->now()));
}

}  // namespace weir::broker
