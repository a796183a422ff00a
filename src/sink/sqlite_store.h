// The store in one SQLite file: WAL, synchronous FULL, so a write that returned survives a power cut.
//
//   logs(topic, part, off, server_id, level, message, timestamp, source, source_pos)
//     primary key (topic, part, off), unique (source, source_pos)
//   positions(topic, part, next)      in the transaction of the rows
//   topics(topic, id)                 the topic's id when it was first read
//   about(name, value)                'cluster'
#pragma once

#include <filesystem>
#include <memory>

#include "sink/store.h"
#include "weir/types.h"

namespace weir::sink {

/// Makes the file, or what an older version did not have in it. Errors name it.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& file);

}  // namespace weir::sink
