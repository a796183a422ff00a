#include "broker/durable_waits.h"

#include "base/assert.h"

namespace weir::broker {

DurableWaits::Ticket DurableWaits::add(const std::vector<Need>& needs) {
  WEIR_ASSERT(!needs.empty());
  const Ticket ticket = ++last_;
  tickets_[ticket].open = needs.size();
  for (std::size_t i = 0; i < needs.size(); ++i) logs_[needs[i].log].emplace(needs[i].position, Waiting{ticket, i});
  return ticket;
}

void DurableWaits::settle(const Waiting& waiting, bool ok, std::vector<Settled>& out) {
  const auto it = tickets_.find(waiting.ticket);
  if (!ok) it->second.failed.push_back(waiting.need);
  if (--it->second.open > 0) return;
  out.push_back({waiting.ticket, std::move(it->second.failed)});
  tickets_.erase(it);
}

std::vector<DurableWaits::Settled> DurableWaits::reached(LogId log, std::int64_t position) {
  std::vector<Settled> out;
  const auto waits = logs_.find(log);
  if (waits == logs_.end()) return out;
  auto& queue = waits->second;
  const auto end = queue.upper_bound(position);
  for (auto it = queue.begin(); it != end; ++it) settle(it->second, true, out);
  queue.erase(queue.begin(), end);
  if (queue.empty()) logs_.erase(waits);
  return out;
}

std::vector<DurableWaits::Settled> DurableWaits::failed(LogId log) {
  std::vector<Settled> out;
  const auto waits = logs_.find(log);
  if (waits == logs_.end()) return out;
  for (const auto& [position, waiting] : waits->second) settle(waiting, false, out);
  logs_.erase(waits);
  return out;
}

}  // namespace weir::broker
