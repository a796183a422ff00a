// DescribeGroups: state and members. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_describe_groups(Core& core, const Request& request) { core.groups().describe(request); }

}  // namespace weir::broker
