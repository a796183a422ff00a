// Inside of EventLoop, for the .cc files of this folder only: asio's io_context, the timers, and what lives on the
// loop.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "runtime/event_loop.h"

namespace weir::runtime {

/// Something the loop keeps alive, and lets go of when it ends first.
class Resident {
 public:
  virtual ~Resident() = default;
  /// The loop is going: drop references to others, call nobody.
  virtual void abandon() = 0;
};

class Reactor {
 public:
  explicit Reactor(std::string name);
  ~Reactor();

  void run();
  void arm();
  void fire();

  const std::string name;
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> guard;

  asio::steady_timer alarm;  // set to the first of the timers
  std::map<std::pair<MonoTime, std::uint64_t>, EventLoop::Work> timers;
  std::unordered_map<std::uint64_t, MonoTime> timer_times;
  std::uint64_t last_timer = 0;
  bool firing = false;

  std::unordered_map<Resident*, std::shared_ptr<Resident>> residents;

  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;  // by mutex
};

}  // namespace weir::runtime
