// A directory that goes away with its object.
#pragma once

#include <string_view>
#include <utility>

#include "runtime/file.h"

namespace weir::runtime {

/// Made under $TMPDIR or /tmp, private to the user; removed with everything in it when destroyed.
class TempDirectory {
 public:
  explicit TempDirectory(std::string_view prefix = "weir");
  ~TempDirectory();
  TempDirectory(TempDirectory&& other) noexcept : path_(std::exchange(other.path_, Path())) {}
  TempDirectory& operator=(TempDirectory&&) = delete;

  const Path& path() const { return path_; }
  Path operator/(const Path& name) const { return path_ / name; }

 private:
  Path path_;
};

}  // namespace weir::runtime
