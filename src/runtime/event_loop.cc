#include "runtime/event_loop.h"

#include <asio/post.hpp>

#include "base/assert.h"
#include "runtime/process.h"
#include "runtime/reactor.h"

namespace weir::runtime {
namespace {
thread_local const Reactor* current = nullptr;
}

Reactor::Reactor(std::string loop_name)
    : name(std::move(loop_name)), io(1), guard(asio::make_work_guard(io)), alarm(io) {}

Reactor::~Reactor() {
  for (auto& [raw, resident] : residents) resident->abandon();
}

void Reactor::run() {
  WEIR_ASSERT(current == nullptr);
  current = this;
  io.run();
  current = nullptr;
  {
    std::lock_guard lock(mutex);
    ended = true;
  }
  changed.notify_all();
}

void Reactor::arm() {
  if (firing || timers.empty()) return;
  const MonoTime first = timers.begin()->first.first;
  if (alarm.expiry() == first) return;  // set already
  alarm.expires_at(first);
  alarm.async_wait([this](const asio::error_code& error) {
    if (!error) fire();
  });
}

void Reactor::fire() {
  const MonoTime now = system_clock().now().mono;
  // Timers that the work sets for now or earlier wait for the next turn, so that sockets get theirs.
  const std::uint64_t last = last_timer;
  firing = true;
  for (auto it = timers.begin(); it != timers.end() && it->first.first <= now;) {
    if (it->first.second > last) {
      ++it;
      continue;
    }
    auto work = std::move(it->second);
    timer_times.erase(it->first.second);
    timers.erase(it);
    work();
    it = timers.begin();
  }
  firing = false;
  alarm.expires_at(MonoTime::max());
  arm();
}

EventLoop::EventLoop(std::string name) : reactor_(std::make_unique<Reactor>(std::move(name))) {}

EventLoop::~EventLoop() {
  stop();
  join();
}

void EventLoop::start() {
  WEIR_ASSERT(!reactor_->thread.joinable());
  reactor_->thread = std::thread([reactor = reactor_.get()] {
    name_thread(reactor->name);
    reactor->run();
  });
}

void EventLoop::run() { reactor_->run(); }

void EventLoop::stop() { reactor_->io.stop(); }

void EventLoop::join() {
  if (!reactor_->thread.joinable()) return;
  WEIR_ASSERT(!in_loop());
  reactor_->thread.join();
}

void EventLoop::post(Work work) { asio::post(reactor_->io, std::move(work)); }

void EventLoop::dispatch(Work work) {
  if (in_loop())
    work();
  else
    post(std::move(work));
}

bool EventLoop::call(Work work) {
  if (in_loop()) {
    work();
    return true;
  }
  auto done = std::make_shared<bool>(false);
  post([this, done, work = std::move(work)] {
    work();
    std::lock_guard lock(reactor_->mutex);
    *done = true;
    reactor_->changed.notify_all();
  });
  std::unique_lock lock(reactor_->mutex);
  reactor_->changed.wait(lock, [&] { return *done || reactor_->ended; });
  return *done;
}

bool EventLoop::in_loop() const { return current == reactor_.get(); }

TimerId EventLoop::call_at(MonoTime when, Work work) {
  const std::uint64_t id = ++reactor_->last_timer;
  reactor_->timers.emplace(std::pair(when, id), std::move(work));
  reactor_->timer_times.emplace(id, when);
  reactor_->arm();
  return TimerId(id);
}

TimerId EventLoop::call_after(Duration delay, Work work) { return call_at(now().mono + delay, std::move(work)); }

bool EventLoop::cancel(TimerId id) {
  const auto number = static_cast<std::uint64_t>(id);
  const auto found = reactor_->timer_times.find(number);
  if (found == reactor_->timer_times.end()) return false;
  reactor_->timers.erase({found->second, number});
  reactor_->timer_times.erase(found);
  return true;  // the alarm may ring for nothing
}

Now EventLoop::now() const { return system_clock().now(); }

}  // namespace weir::runtime
