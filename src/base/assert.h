// WEIR_ASSERT: a broken invariant of ours. On in release too: a process that is wrong must not go on acknowledging.
#pragma once

namespace weir {
[[noreturn]] void assertion_failed(const char* what, const char* file, int line);
}  // namespace weir

#define WEIR_ASSERT(condition) ((condition) ? void(0) : ::weir::assertion_failed(#condition, __FILE__, __LINE__))
