// ListGroups: all groups, by state and type. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_list_groups(Core& core, const Request& request) { core.groups().list(request); }

}  // namespace weir::broker
