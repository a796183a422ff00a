// OffsetFetch: where groups have got to. See broker/group/coordinator.h.
#include "broker/core.h"
#include "broker/group/coordinator.h"
#include "broker/handlers/handler.h"

namespace weir::broker {

void handle_offset_fetch(Core& core, const Request& request) { core.groups().fetch_offsets(request); }

}  // namespace weir::broker
