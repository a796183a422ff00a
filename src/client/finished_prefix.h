// What was handed out and in which order it may be committed: records finish in any order, the contiguous prefix
// counts.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "weir/types.h"

namespace weir::client {

/// One partition in one assignment. Owned by one loop.
class FinishedPrefix {
 public:
  explicit FinishedPrefix(Offset start) : position_(start), handed_out_end_(start) {}

  /// `offset` is above every offset handed out before; offsets in between belong to nobody (control records).
  void handed_out(Offset offset, Bytes size) {
    entries_.push_back({offset, size, false});
    position_ = handed_out_end_ = offset + 1;
    bytes_ += size;
    ++unfinished_;
  }
  /// Nothing before `next` will be handed out any more.
  void skip_to(Offset next) { position_ = std::max(position_, next); }

  /// False when the offset was not handed out here or is finished already.
  bool finish(Offset offset) {
    auto at = std::lower_bound(entries_.begin(), entries_.end(), offset,
                               [](const Entry& e, Offset o) { return e.offset < o; });
    if (at == entries_.end() || at->offset != offset || at->finished) return false;
    mark(*at);
    while (!entries_.empty() && entries_.front().finished) entries_.pop_front();
    return true;
  }
  /// Finishes everything before `next`; how many were open.
  std::size_t finish_before(Offset next) {
    std::size_t count = 0;
    while (!entries_.empty() && entries_.front().offset < next) {
      if (!entries_.front().finished) {
        mark(entries_.front());
        ++count;
      }
      entries_.pop_front();
    }
    while (!entries_.empty() && entries_.front().finished) entries_.pop_front();
    return count;
  }

  /// Everything before this is finished: what may be committed.
  Offset prefix() const { return entries_.empty() ? position_ : entries_.front().offset; }
  /// The next offset to hand out.
  Offset position() const { return position_; }
  /// After the last record handed out; what lies between this and position() belongs to nobody.
  Offset handed_out_end() const { return handed_out_end_; }
  std::size_t unfinished() const { return unfinished_; }
  Bytes bytes() const { return bytes_; }
  bool is_open(Offset offset) const {
    auto at = std::lower_bound(entries_.begin(), entries_.end(), offset,
                               [](const Entry& e, Offset o) { return e.offset < o; });
    return at != entries_.end() && at->offset == offset && !at->finished;
  }

 private:
  struct Entry {
    Offset offset;
    Bytes size;
    bool finished;
  };
  void mark(Entry& entry) {
    entry.finished = true;
    bytes_ -= entry.size;
    --unfinished_;
  }

  std::deque<Entry> entries_;  // from the first unfinished one on
  Offset position_;
  Offset handed_out_end_;
  std::size_t unfinished_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace weir::client
