// The grammar of java.util.Properties, in which server.properties is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/types.h"

namespace weir::broker {

struct Property {
  std::string name;
  std::string value;  ///< With the blanks at its end, as in Java.
  int line = 0;       ///< Where it begins, from 1.
  bool operator==(const Property&) const = default;
};

/// All of them in their order, a name as often as it is there. Fails only for a broken \u escape, naming the line:
/// "12: ...". Bytes beyond ASCII are taken as they are, where Java reads Latin-1.
Result<std::vector<Property>> parse_properties(std::string_view text);

}  // namespace weir::broker
