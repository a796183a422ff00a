// SyncGroup: the leader hands in the assignment, everybody gets theirs. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_sync_group(Core& core, const Request& request) { core.groups().sync(core.now(), request); }

}  // namespace weir::broker
