// One thread's loop: work posted to it, timers, and the sockets that belong to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "weir/types.h"

namespace weir::runtime {

class Reactor;

/// Names a timer until it has fired. 0 is no timer.
enum class TimerId : std::uint64_t {};
inline constexpr TimerId kNoTimer{0};

/// Runs once, on a thread of its own (start) or on the caller's (run). What says "loop thread" may also be called while
/// the loop is not running, by the one thread that then owns it.
class EventLoop {
 public:
  using Work = std::function<void()>;

  /// `name` names the thread, at most 15 characters are shown by tools.
  explicit EventLoop(std::string name);
  /// Stops and joins. Work not yet run is destroyed unrun.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs the loop on a new thread until stop().
  void start();
  /// Runs the loop on this thread until stop().
  void run();
  /// Ends the loop after the work it is in. Any thread; again is harmless.
  void stop();
  /// Waits for the thread of start(). Not from the loop thread.
  void join();

  /// Runs `work` on the loop, in the order posted. Any thread; never waits. Work posted after the end is never run.
  void post(Work work);
  /// Runs it at once when already on the loop thread, else posts it.
  void dispatch(Work work);
  /// Posts `work` and waits until it is done; at once when already on the loop thread. False when the loop ended first.
  bool call(Work work);
  /// True on the thread that is inside run().
  bool in_loop() const;

  /// Runs `work` once at or after `when`. Loop thread.
  TimerId call_at(MonoTime when, Work work);
  TimerId call_after(Duration delay, Work work);
  /// True when the timer had not fired and now will not. Loop thread.
  bool cancel(TimerId id);

  Now now() const;
  /// For the sockets of this folder.
  Reactor& reactor() { return *reactor_; }

 private:
  std::unique_ptr<Reactor> reactor_;
};

}  // namespace weir::runtime
