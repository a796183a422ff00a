// What lines amount to, in fixed memory: rates, the slope of the latency, the producer's queue, the service per window.
//
// Rates go by message number, so lines may be missing. Where numbers start again (two runs, two files) a new run
// begins; rates and slope are taken within runs and pooled. The slope is a least-squares fit (Welford's running sums).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/explain/lines.h"

namespace weir::bench {

/// A straight line through points of one or more runs: each run has its own height, all share the slope. Least squares
/// by Welford's running sums, so the size of the numbers does not matter.
class LineFit {
 public:
  void add(double x, double y);
  void end_run();
  /// None without two different x in one run.
  std::optional<double> slope() const;
  /// Standard deviation of the points around the line.
  double noise() const;

 private:
  double count_ = 0, mean_x_ = 0, mean_y_ = 0;  // of this run
  double sxx_ = 0, sxy_ = 0, syy_ = 0;          // of all runs
  double points_ = 0, runs_ = 0;
};

/// The service over one stretch of message numbers.
struct ServiceWindow {
  std::int64_t first_number = 0;
  std::int64_t last_number = 0;
  double per_s = 0;
};

/// Everything a diagnosis is made from. Empty optionals: the lines do not tell.
struct Observations {
  std::int64_t samples = 0;  ///< message lines
  std::int64_t queue_lines = 0;
  std::int64_t queue_full_lines = 0;
  std::int64_t unknown_lines = 0;  ///< neither blank nor any of these

  std::int64_t first_number = 0;
  std::int64_t last_number = 0;
  std::int64_t longest_run = 0;                              ///< the largest last number minus first number of a run
  double first_ms = 0, last_ms = 0, min_ms = 0, max_ms = 0;  ///< latency
  double stamps_ms = 0;                                      ///< first to last stamp, over all runs
  double received_ms = 0;                                    ///< first to last receive, over all runs

  std::optional<double> arrival_per_s;          ///< by the stamps; none when all stamps are one
  std::optional<double> service_per_s;          ///< by the receive times
  std::optional<double> slope_ms_per_1000;      ///< latency gained per 1,000 messages
  double noise_ms = 0;                          ///< standard deviation around the fitted line
  std::optional<double> waiting_at_last_stamp;  ///< appended and not received when the last stamp was set (single run)
  std::vector<ServiceWindow> windows;           ///< of the longest run, at most kMaxWindows

  /// Of the receive time, the part seen line by line (neighbouring numbers), 0 to 1, and how many such steps there
  /// were.
  double covered = 0;
  std::int64_t neighbours = 0;
  /// Of that, the part spent in waits at least 8 times as long as a quick step although the record was appended
  /// already.
  double stalled = 0;
  std::int64_t stalls = 0;     ///< such waits
  std::int64_t backwards = 0;  ///< steps in which the receive time went back: times too rough to see waits in

  std::optional<double> queue_growth_per_record;  ///< mean step between neighbouring queue lines
  std::int64_t queue_steps = 0;
  double queue_rise = 0;   ///< what a fitted line gains over those steps
  double queue_noise = 0;  ///< standard deviation around it: a queue that is sent in batches goes up and down
  std::int64_t max_queue = 0;
};

/// Feed it lines, then ask. Owned by one thread; memory does not depend on the input.
class Observer {
 public:
  static constexpr std::size_t kMaxWindows = 16;

  void feed(const Line& line);
  /// Between two inputs: their lines are not neighbours.
  void end_of_input();
  Observations result() const;

 private:
  struct Point {
    std::int64_t number = 0;
    double stamp_ms = 0;    // relative to the first stamp seen
    double receive_ms = 0;  // on the same scale
    double latency_ms = 0;
  };
  struct Run {
    std::int64_t count = 0;
    Point first, last;
    double min_stamp = 0, max_stamp = 0;
    std::vector<std::array<Point, 2>> windows;
    std::int64_t window_width = 16;
  };
  struct Sums {
    std::int64_t runs = 0;
    double numbers = 0, stamps_ms = 0, receive_ms = 0;
    std::int64_t longest = 0;
    std::vector<std::array<Point, 2>> windows;
  };

  void on_message(const MessageLine& line);
  void on_queue(std::int64_t length);
  void end_queue_run();
  void step(const Point& from, const Point& to);
  void extend_windows(const Point& point);
  static void close_run(const Run& run, Sums& sums);

  Observations seen_;
  std::optional<std::int64_t> epoch_ms_;
  std::optional<Run> run_;
  LineFit latency_;
  Sums sums_;
  std::optional<std::int64_t> previous_queue_;
  double queue_growth_ = 0;
  LineFit queue_;

  // Times between neighbouring messages, less the wait for an append, by power of two of nanoseconds.
  struct Bucket {
    std::int64_t count = 0;
    double total_ms = 0;
  };
  std::array<Bucket, 64> steps_{};
  double step_time_ms_ = 0;
};

}  // namespace weir::bench
