// What `weir bench seed` prints. Pure.
#pragma once

#include <string>

#include "bench/seed/runs.h"

namespace weir::bench {

struct SeedReport {
  Burst question;
  Burst no_work;
  Guarded guarded;
};

/// For people; ends with what `explain` says of the question's run.
std::string to_text(const SeedReport& report);
/// One line: {"question": {...}, "no_work": {...}, "guarded": {...}}.
std::string to_json(const SeedReport& report);

}  // namespace weir::bench
