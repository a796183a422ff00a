#include "broker/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace weir::broker {

void TimerWheel::schedule(std::uint64_t id, MonoTime when) {
  cancel(id);
  const auto ticks = std::chrono::ceil<std::chrono::milliseconds>(when - start_).count();
  place(id, std::max(static_cast<std::uint64_t>(std::max<std::int64_t>(ticks, 0)), current_ + 1));
}

void TimerWheel::place(std::uint64_t id, std::uint64_t tick) {
  const std::uint64_t distance = tick - current_;
  int level = 0;
  while (level < kLevels - 1 && distance >= (1ull << (kBits * (level + 1)))) ++level;
  // Beyond the last level's reach: as far out as it goes, and sunk again from there.
  const std::uint64_t reach = (kSlots - 1) << (kBits * (kLevels - 1));
  const std::uint64_t slot = (std::min(tick, current_ + reach) >> (kBits * level)) % kSlots;
  auto& list = slots_[static_cast<std::size_t>(level)][slot];
  list.push_back(id);
  used_[static_cast<std::size_t>(level)] |= 1ull << slot;
  entries_[id] = Entry{tick, level, slot, std::prev(list.end())};
}

void TimerWheel::cancel(std::uint64_t id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  const Entry& entry = it->second;
  auto& list = slots_[static_cast<std::size_t>(entry.level)][entry.slot];
  list.erase(entry.place);
  if (list.empty()) used_[static_cast<std::size_t>(entry.level)] &= ~(1ull << entry.slot);
  entries_.erase(it);
}

std::optional<std::uint64_t> TimerWheel::next_tick() const {
  std::optional<std::uint64_t> best;
  for (int level = 0; level < kLevels; ++level) {
    const std::uint64_t used = used_[static_cast<std::size_t>(level)];
    if (used == 0) continue;
    // The first used slot after the current one, going round; its first tick is when it sinks (level 0: is due).
    const std::uint64_t position = current_ >> (kBits * level);
    const auto ahead =
        static_cast<std::uint64_t>(std::countr_zero(std::rotr(used, static_cast<int>((position + 1) % kSlots)))) + 1;
    const std::uint64_t tick = (position + ahead) << (kBits * level);
    best = best ? std::min(*best, tick) : tick;
  }
  return best;
}

std::optional<MonoTime> TimerWheel::next() const {
  const auto tick = next_tick();
  if (!tick) return std::nullopt;
  return start_ + std::chrono::milliseconds(*tick);
}

void TimerWheel::expire(MonoTime now, std::vector<std::uint64_t>& due) {
  const auto elapsed = std::chrono::floor<std::chrono::milliseconds>(now - start_).count();
  const auto target = static_cast<std::uint64_t>(std::max<std::int64_t>(elapsed, 0));
  for (auto tick = next_tick(); tick && *tick <= target; tick = next_tick()) {
    current_ = *tick;
    for (int level = 0; level < kLevels; ++level) {
      if (level > 0 && (current_ & ((1ull << (kBits * level)) - 1)) != 0) break;
      const std::uint64_t slot = (current_ >> (kBits * level)) % kSlots;
      auto sinking = std::move(slots_[static_cast<std::size_t>(level)][slot]);
      slots_[static_cast<std::size_t>(level)][slot].clear();
      used_[static_cast<std::size_t>(level)] &= ~(1ull << slot);
      for (const std::uint64_t id : sinking) {
        const std::uint64_t deadline = entries_[id].tick;
        if (deadline <= current_) {
          entries_.erase(id);
          due.push_back(id);
        } else {
          place(id, deadline);
        }
      }
    }
  }
  current_ = std::max(current_, target);
}

}  // namespace weir::broker
