// What the broker says about faults that clients repeat: a full disk or a stranger must not fill the log with lines.
//
// Owned by one loop.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/log.h"
#include "weir/types.h"

namespace weir::broker {

class Complaints {
 public:
  /// Warns, unless something of this kind was said in the last 30 s: then it is counted, and the next line says how
  /// many were left out. `kind` is a plural for people: "refused appends". True when the line was written.
  bool warn(MonoTime now, std::string_view kind, std::string_view line);
  /// At the end: a last line for each kind of which something was left out. Returns how much.
  std::size_t finish();

 private:
  static constexpr Duration kPeriod = std::chrono::seconds(30);
  std::map<std::string, log::Every, std::less<>> kinds_;
};

}  // namespace weir::broker
