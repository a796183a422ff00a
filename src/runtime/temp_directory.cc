#include "runtime/temp_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"
#include "base/log.h"

namespace weir::runtime {

TempDirectory::TempDirectory(std::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = (Path(base != nullptr ? base : "/tmp") / (std::string(prefix) + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    log::error("cannot make {}: {}; set TMPDIR to a directory one can write to", pattern, std::strerror(errno));
    WEIR_ASSERT(!"no temporary directory");
  }
  path_ = pattern;
}

TempDirectory::~TempDirectory() {
  if (path_.empty()) return;
  if (auto removed = posix_file_system().remove_all(path_); !removed) log::warn("{}", removed.error().message);
}

}  // namespace weir::runtime
