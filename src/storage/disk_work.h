// Slow work on files that is prepared by the owner of an object and done by somebody else.
#pragma once

#include <functional>

#include "weir/types.h"

namespace weir::storage {

/// Syncs or unlinks files. Run once, on any thread: it holds what it needs and touches nothing else. May be empty:
/// nothing to do.
using DiskWork = std::function<Result<void>()>;

}  // namespace weir::storage
