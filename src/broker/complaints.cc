#include "broker/complaints.h"

namespace weir::broker {

bool Complaints::warn(MonoTime now, std::string_view kind, std::string_view line) {
  auto found = kinds_.find(kind);
  if (found == kinds_.end()) found = kinds_.emplace(kind, kPeriod).first;
  log::Every& every = found->second;
  if (!every.allow(now)) return false;
  if (every.suppressed() == 0) {
    log::warn("{}", line);
  } else {
    log::warn("{} ({} more {} since the last such line)", line, every.suppressed(), kind);
  }
  return true;
}

std::size_t Complaints::finish() {
  std::size_t all = 0;
  for (auto& [kind, every] : kinds_) {
    const std::size_t held = every.take_held();
    if (held > 0) log::warn("{} more {} since the last such line", held, kind);
    all += held;
  }
  return all;
}

}  // namespace weir::broker
