// Who waits for which bytes to be on disk: answers that leave only when everything they speak of is durable.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "broker/effects.h"
#include "weir/types.h"

namespace weir::broker {

/// A position in a log: an offset, or the number of records of the metadata log.
struct Need {
  LogId log;
  std::int64_t position = 0;  ///< Everything below must be durable.
};

/// A ticket waits for one or more needs. Owned by the core loop.
class DurableWaits {
 public:
  using Ticket = std::uint64_t;
  struct Settled {
    Ticket ticket;
    std::vector<std::size_t> failed;  ///< Indexes of the needs that never became durable.
  };

  /// `needs` is not empty. Tickets settle in the order of their last need to be met.
  Ticket add(const std::vector<Need>& needs);
  /// Everything below `position` is durable now.
  std::vector<Settled> reached(LogId log, std::int64_t position);
  /// Nothing more of this log will become durable.
  std::vector<Settled> failed(LogId log);
  std::size_t size() const { return tickets_.size(); }

 private:
  struct Waiting {
    Ticket ticket;
    std::size_t need;
  };
  struct State {
    std::size_t open = 0;
    std::vector<std::size_t> failed;
  };
  void settle(const Waiting& waiting, bool ok, std::vector<Settled>& out);

  std::unordered_map<LogId, std::multimap<std::int64_t, Waiting>> logs_;
  std::unordered_map<Ticket, State> tickets_;
  Ticket last_ = 0;
};

}  // namespace weir::broker
