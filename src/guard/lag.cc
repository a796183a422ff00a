#include "guard/lag.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::guard {

std::string_view to_string(LagState state) {
  switch (state) {
    case LagState::kUnknown: return "unknown";
    case LagState::kUncommitted: return "uncommitted";
    case LagState::kBeyondEnd: return "beyond_end";
    case LagState::kStopped: return "stopped";
    case LagState::kExpired: return "expired";
    case LagState::kOk: return "ok";
  }
  return "unknown";
}

Result<MissingCommit> parse_missing_commit(std::string_view text) {
  if (text == "unknown") return MissingCommit::kUnknown;
  if (text == "earliest") return MissingCommit::kEarliest;
  if (text == "latest") return MissingCommit::kLatest;
  return fail(ErrorKind::kInvalid, fmt::format("\"{}\" is not one of unknown, earliest, latest", text));
}

bool GroupLag::stopped() const {
  return std::ranges::any_of(partitions, [](const auto& p) { return p.assigned && p.state == LagState::kStopped; });
}

}  // namespace weir::guard
