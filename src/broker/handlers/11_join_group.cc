// JoinGroup: a member enters a group, or comes back to it. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_join_group(Core& core, const Request& request) { core.groups().join(core.now(), request); }

}  // namespace weir::broker
