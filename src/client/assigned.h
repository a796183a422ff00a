// One partition in one assignment: what was read ahead, what is in the application's hands, what is finished.
//
//   prefetch -> ready -> handed out -> finished            held from the high watermark on until the low one is reached
//                  ^ returned --'
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/finished_prefix.h"
#include "flow/watermarks.h"
#include "weir/consumer.h"

namespace weir::client {

/// "topic-3", as Kafka names it.
std::string name_of(const TopicPartition& partition);

/// Owned by the consumer's core, under its mutex.
class Assigned {
 public:
  Assigned(std::uint64_t assignment, Offset start, const ConsumerSettings& settings)
      : number(assignment),
        start(start),
        prefix(start),
        marks_(static_cast<std::int64_t>(settings.low_watermark), static_cast<std::int64_t>(settings.high_watermark)) {}

  const std::uint64_t number;
  const Offset start;
  FinishedPrefix prefix;
  bool held_by_call = false;
  bool stopping = false;        // being given up
  std::optional<Offset> asked;  // the highest commit asked for
  std::optional<Offset> committed;
  std::optional<Offset> log_end;

  /// A record of the prefetch, not handed out yet.
  void add(ConsumedRecord record);
  /// Records and bytes of these.
  std::size_t ready() const { return ready_.size(); }
  Bytes ready_bytes() const { return ready_bytes_; }
  /// What was given back goes out again first. Each lowers `room` by the records it appends to `out`.
  void hand_out_returned(std::size_t& room, std::vector<ConsumedRecord>& out);
  void hand_out_ready(std::size_t& room, std::vector<ConsumedRecord>& out);
  /// Handed out once, not handled. Dropped when it is not open any more or was given back already.
  void give_back(ConsumedRecord record);
  /// What was given back is not handed out again: all of it, or what is before `next`.
  void drop_returned() { returned_.clear(); }
  void drop_returned_before(Offset next);

  /// Handed out and neither finished nor given back.
  std::size_t in_hands() const { return prefix.unfinished() - returned_.size(); }
  bool held() const { return held_by_call || stopping || marks_.held(); }
  /// After `prefix` changed; true when the high watermark was reached just now.
  bool update_marks();
  /// What must be committed beyond what was asked for: the finished prefix, from now on asked for.
  std::optional<Offset> ask_for_prefix();

 private:
  flow::Watermarks marks_;
  std::deque<ConsumedRecord> returned_;
  std::deque<ConsumedRecord> ready_;
  Bytes ready_bytes_ = 0;
};

}  // namespace weir::client
