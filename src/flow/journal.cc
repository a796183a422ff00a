#include "flow/journal.h"

#include <fmt/format.h>

#include <utility>

namespace weir::flow {

void Journal::add(Decision decision) {
  decision.number = ++total_;
  decisions_.push_back(std::move(decision));
  while (decisions_.size() > capacity_) decisions_.pop_front();
}

std::string to_string(const Decision& decision) {
  std::string text = fmt::format("{}: {} ", decision.law, to_string(decision.scope));
  text += !decision.limit       ? "released"
          : *decision.limit > 0 ? fmt::format("limited to {:.0f}", *decision.limit)
                                : "paused";
  if (decision.signal.kind != SignalKind::kNone) {
    text += fmt::format(" ({} {:.6g} {})", to_string(decision.signal.kind), decision.signal.value,
                        unit_of(decision.signal.kind));
  }
  if (!decision.why.empty()) text += ": " + decision.why;
  return text;
}

}  // namespace weir::flow
