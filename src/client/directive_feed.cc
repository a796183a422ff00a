#include "client/directive_feed.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "http/directives.h"
#include "runtime/process.h"

namespace weir::client {

void FollowedDirectives::follow(const std::vector<Directive>& told,
                                const std::function<void(const Directive&)>& apply) {
  auto gone = std::exchange(followed_, {});
  for (const Directive& directive : told) {
    apply(directive);
    gone.erase(directive.scope);
    followed_.emplace(directive.scope, directive);
  }
  for (auto& [scope, directive] : gone) {
    directive.expires = MonoTime::min();
    apply(directive);
  }
}

DirectiveFeed::DirectiveFeed(DirectiveFeedSettings settings, std::function<void(const Directive&)> apply)
    : settings_(std::move(settings)), apply_(std::move(apply)) {}

DirectiveFeed::~DirectiveFeed() { stop(); }

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
  log::Every complaint(std::chrono::seconds(30));
  while (true) {
    const auto told =
        http::fetch_directives(settings_.guard, settings_.client_id, settings_.topics, settings_.laws, system_clock());
    if (told) {
      followed_.follow(*told, apply_);
    } else if (complaint.allow(system_clock().now().mono)) {
      log::warn("no directives from the guard: {}", told.error().message);
    }
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, settings_.period, [&] { return stopping_; })) return;
  }
}

}  // namespace weir::client
