#include "broker/api_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace weir::broker {
namespace {

TEST(ApiTable, IsSortedAndWithinTheProtocolTables) {
  for (std::size_t i = 0; i < apis().size(); ++i) {
    const Api& api = apis()[i];
    SCOPED_TRACE(name(api.key));
    if (i > 0) {
      EXPECT_LT(apis()[i - 1].key, api.key);
    }
    EXPECT_EQ(find_api(static_cast<std::int16_t>(api.key)), &api);
    for (const auto* table : {&api.request(), &api.response()}) {
      EXPECT_LE(table->versions.first, api.served.first);
      EXPECT_GE(table->versions.last, api.served.last);
    }
  }
  EXPECT_EQ(find_api(7), nullptr);
  EXPECT_EQ(find_api(999), nullptr);
}

TEST(ApiTable, IsWhatTheCompatibilityPageSays) {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/compat.md");
  ASSERT_TRUE(page) << "docs/compat.md is missing";
  std::string said, served;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| ") && line[2] >= '0' && line[2] <= '9') said += line + "\n";
  }
  for (const Api& api : apis()) {
    served += fmt::format("| {} | {} | {}-{} |\n", static_cast<int>(api.key), name(api.key), api.served.first,
                          api.served.last);
  }
  EXPECT_EQ(said, served);
}

}  // namespace
}  // namespace weir::broker
