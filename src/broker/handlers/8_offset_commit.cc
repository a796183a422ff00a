// OffsetCommit: where a group has got to. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_offset_commit(Core& core, const Request& request) { core.groups().commit_offsets(core.now(), request); }

}  // namespace weir::broker
