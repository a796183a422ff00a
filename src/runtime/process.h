// What this process is and uses.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/file.h"
#include "weir/types.h"

namespace weir::runtime {

/// Memory in use now and at most so far (VmRSS, VmHWM); of another process by its id. 0 when it cannot be read.
Bytes resident_bytes(int pid = 0);
Bytes peak_resident_bytes(int pid = 0);
/// User and system CPU time so far.
Duration cpu_time(int pid = 0);
/// Open descriptors of this process.
std::size_t open_descriptors();
/// Raises the soft limit of open files to the hard one; the limit then in force.
std::size_t raise_file_limit();
/// The machine's name, "localhost" when it has none.
std::string host_name();
/// The running program's own file, to start it again.
Path executable_path();
/// $XDG_STATE_HOME/weir or ~/.local/state/weir; without $HOME, below the home in the password database.
Path state_directory();
/// True when the descriptor is a terminal.
bool is_terminal(int descriptor);
/// Names the calling thread, for top and debuggers.
void name_thread(const std::string& name);

}  // namespace weir::runtime
