#include "metrics/ledger.h"

#include <fmt/format.h>

namespace weir::metrics {

std::string_view to_string(Mark mark) {
  constexpr std::array<std::string_view, kMarks> names{"read", "queued", "sent", "acked", "fetched", "stored"};
  return names[std::size_t(mark)];
}

std::optional<Duration> StageTimes::stage(Mark mark) const {
  const auto& end = at_[std::size_t(mark)];
  if (!end) return std::nullopt;
  for (std::size_t i = std::size_t(mark); i-- > 0;) {
    if (at_[i]) return *end - *at_[i];
  }
  return std::nullopt;
}

Duration StageTimes::total() const {
  std::optional<Duration> first, last;
  for (const auto& at : at_) {
    if (!at) continue;
    if (!first) first = at;
    last = at;
  }
  return first ? *last - *first : Duration::zero();
}

void Ledger::add(const StageTimes& times) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (const auto stage = times.stage(Mark(i))) stages_[i].record(*stage);
  }
  total_.record(times.total());
}

LatencySummary Ledger::stage(Mark mark) const {
  std::lock_guard lock(mutex_);
  return stages_[std::size_t(mark)].summary();
}

LatencySummary Ledger::total() const {
  std::lock_guard lock(mutex_);
  return total_.summary();
}

std::string Ledger::line() const {
  std::lock_guard lock(mutex_);
  const double records = std::max<double>(1, double(total_.count()));
  const double total = 1000 * total_.sum() / records;
  std::string text;
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (stages_[i].count() == 0) continue;
    const double mean = 1000 * stages_[i].sum() / records;
    text += fmt::format("{} {:.1f} ms ({:.0f} %), ", to_string(Mark(i)), mean, total > 0 ? 100 * mean / total : 0);
  }
  return text + fmt::format("total {:.1f} ms", total);
}

}  // namespace weir::metrics
