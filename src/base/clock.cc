#include "base/clock.h"

namespace weir {
namespace {

class SystemClock final : public Clock {
 public:
  Now now() const override {
    return {std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()),
            std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now())};
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

ManualClock::ManualClock() : now_{MonoTime(std::chrono::hours(1)), from_unix_ms(1'767'225'600'000)} {}

}  // namespace weir
