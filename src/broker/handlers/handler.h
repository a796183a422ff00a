// One handler per API, each in the file that carries its key: `12_heartbeat.cc` defines handle_heartbeat. `ls` is the
// list of what is served; api_table.cc says which versions.
//
// A handler runs on the core loop, reads `request.as<protocol::XRequest>()` and either answers or leaves the request
// open (broker/core.h). It never blocks and never asks for the time: core.now().
#pragma once

namespace weir::broker {

class Core;
struct Request;

using Handler = void (*)(Core& core, const Request& request);

void handle_produce(Core& core, const Request& request);                    //  0
void handle_fetch(Core& core, const Request& request);                      //  1
void handle_list_offsets(Core& core, const Request& request);               //  2
void handle_metadata(Core& core, const Request& request);                   //  3
void handle_offset_commit(Core& core, const Request& request);              //  8
void handle_offset_fetch(Core& core, const Request& request);               //  9
void handle_find_coordinator(Core& core, const Request& request);           // 10
void handle_join_group(Core& core, const Request& request);                 // 11
void handle_heartbeat(Core& core, const Request& request);                  // 12
void handle_leave_group(Core& core, const Request& request);                // 13
void handle_sync_group(Core& core, const Request& request);                 // 14
void handle_describe_groups(Core& core, const Request& request);            // 15
void handle_list_groups(Core& core, const Request& request);                // 16
void handle_api_versions(Core& core, const Request& request);               // 18
void handle_create_topics(Core& core, const Request& request);              // 19
void handle_delete_topics(Core& core, const Request& request);              // 20
void handle_init_producer_id(Core& core, const Request& request);           // 22
void handle_describe_configs(Core& core, const Request& request);           // 32
void handle_incremental_alter_configs(Core& core, const Request& request);  // 44
void handle_describe_client_quotas(Core& core, const Request& request);     // 48
void handle_alter_client_quotas(Core& core, const Request& request);        // 49
void handle_describe_cluster(Core& core, const Request& request);           // 60

}  // namespace weir::broker
