// Heartbeat: a member is alive; does it have to join again? See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_heartbeat(Core& core, const Request& request) { core.groups().heartbeat(core.now(), request); }

}  // namespace weir::broker
