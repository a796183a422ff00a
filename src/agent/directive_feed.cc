#include "agent/directive_feed.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "http/directives.h"
#include "runtime/process.h"

namespace weir::agent {

void DirectiveFeed::start() {
  thread_ = std::thread([this] { run(); });
}

void DirectiveFeed::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DirectiveFeed::run() {
  runtime::name_thread("directives");
  log::Every complaints(std::chrono::seconds(30));
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto told =
        http::fetch_directives(settings_.guard, settings_.client_id, settings_.topics, settings_.laws, system_clock());
    if (told) {
      follow(*told);
    } else if (complaints.allow(system_clock().now().mono)) {
      log::warn("no directives from the guard: {}", told.error().message);
    }
    lock.lock();
    wake_.wait_for(lock, settings_.period, [this] { return stopping_; });
  }
}

void DirectiveFeed::follow(const std::vector<Directive>& told) {
  auto gone = std::exchange(followed_, {});
  for (const Directive& directive : told) {
    producer_.apply(directive);
    gone.erase(directive.scope);
    followed_.emplace(directive.scope, directive);
  }
  // What is no longer told has been taken back.
  for (auto& [scope, directive] : gone) {
    directive.expires = MonoTime::min();
    producer_.apply(directive);
  }
}

}  // namespace weir::agent
