// LeaveGroup: members go, without waiting for their sessions to end. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_leave_group(Core& core, const Request& request) { core.groups().leave(core.now(), request); }

}  // namespace weir::broker
