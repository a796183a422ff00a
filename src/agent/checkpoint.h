// The checkpoint: which file has been acknowledged up to where. One JSON file, replaced as a whole.
//
//   {"version":1,"files":[{"path":"/var/log/app.log","source":"4f1c...","device":"2049","inode":"1315","birth":"...",
//     "position":"88213","head_length":1024,"head_hash":"..."}]}
// Numbers that may be above 2^53 are strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/file.h"
#include "weir/types.h"

namespace weir::agent {

/// How many first bytes of a file tell it from another one on the same inode.
inline constexpr Bytes kHeadBytes = 1024;

/// A file as it was when its position was written down.
struct FileMark {
  std::string path;
  std::string source;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t birth = 0;  ///< nanoseconds since the epoch; 0: unknown
  std::uint64_t position = 0;
  std::uint64_t head_length = 0;  ///< at most kHeadBytes
  std::uint64_t head_hash = 0;    ///< of its first `head_length` bytes
};

std::string to_json(const std::vector<FileMark>& marks);
/// kInvalid when it is not a checkpoint.
Result<std::vector<FileMark>> parse_checkpoint(std::string_view json);

/// Empty when there is none. Fails when there is one that cannot be read: starting over would send everything again.
Result<std::vector<FileMark>> load_checkpoint(runtime::FileSystem& files, const runtime::Path& path);

/// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view bytes);
/// Hash of the first `length` bytes; kInvalid when the file is shorter.
Result<std::uint64_t> head_hash(const runtime::File& file, Bytes length);

}  // namespace weir::agent
