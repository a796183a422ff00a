// A YAML file as a list of settings with their places. What they mean is said in settings.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::pipeline {

/// One setting as it stands in the file. Nested maps are joined by dots (`buffer: {memory: 1}` is `buffer.memory`), so
/// Kafka's dotted names may be pasted as they are. A list gives one setting per item, all with the same name.
struct Setting {
  std::string name;
  std::string value;
  std::string where;  ///< "weir.yaml:12"
};

/// The settings of one top-level section, in the order of the file.
struct Section {
  std::string name;
  std::string where;
  std::vector<Setting> settings;
};

/// Parses text; `name` is what messages call it. kInvalid with file:line for what is not YAML, a section that is not a
/// map, a name that is set twice, or anything nested deeper than eight levels.
Result<std::vector<Section>> parse_config(const std::string& text, std::string_view name);

/// Reads and parses a file of at most 1 MiB. kNotFound when it cannot be read.
Result<std::vector<Section>> load_config(const std::string& path);

}  // namespace weir::pipeline
