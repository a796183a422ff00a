// What the guard's two threads share.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "flow/journal.h"
#include "guard/directive_book.h"
#include "guard/guard.h"
#include "guard/order.h"

namespace weir::guard {

/// The measuring thread writes snapshots and laws, the server's thread orders; `mutex_` guards all that both touch.
class Guard::State {
 public:
  State(GuardSettings settings, Registry& metrics, std::unique_ptr<ClusterSource> source);

  Result<http::Address> start();
  void stop();

  /// A snapshot and its text for /metrics, made once.
  struct Published {
    std::shared_ptr<const LagSnapshot> lag = std::make_shared<LagSnapshot>();
    std::string metrics;
  };
  std::shared_ptr<const Published> published() const;
  std::shared_ptr<const LagSnapshot> measured(Duration timeout);
  std::vector<Directive> directives(MonoTime now, const DirectiveQuery& query) const;

  std::function<PipelineStatus()> pipeline_status;
  std::function<void()> directives_changed;

 private:
  // The routes, in api.cc; all on the server's thread.
  void add_routes();
  http::Response order(OrderKind kind, const http::Request& request);
  http::Response check(const std::string& group) const;
  http::Response directives_for(const http::Request& request) const;
  std::string status() const;
  void open_events(std::shared_ptr<http::Stream> stream);

  // The measuring thread.
  void measure_until_stopped();
  void measure();
  void send_events();
  void note_journal();  // With mutex_ held: counts decisions for the metrics.

  const GuardSettings settings_;
  Registry& metrics_;
  Registry::Hook collect_;
  std::unique_ptr<ClusterSource> source_;
  LagMonitor monitor_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // of the measuring thread, and of who waits for a measurement
  bool stopping_ = false;
  bool wanted_ = false;  // a measurement before its time
  DirectiveBook book_;
  flow::Journal journal_;
  Steering steering_;
  std::uint64_t counted_decisions_ = 0;
  std::shared_ptr<const Published> published_ = std::make_shared<Published>();
  std::vector<std::shared_ptr<http::Stream>> events_;

  const Now started_;
  std::thread thread_;
  http::Server server_;  // Last: its thread uses everything above.
};

/// The page at `/`, from web/index.html.
const char* page();

}  // namespace weir::guard
