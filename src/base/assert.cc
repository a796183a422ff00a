#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "weir: broken invariant: %s (%s:%d); this is a bug, please report it\n", what, file, line);
  std::abort();
}

}  // namespace weir
