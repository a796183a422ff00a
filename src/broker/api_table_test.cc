#include "broker/api_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "protocol/codec.h"
#include "protocol/messages/0_produce.h"

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

/// Decodes a Produce that names so many partitions and brings nothing for them.
Result<Request> decoded_produce(int partitions) {
  protocol::ProduceRequest message;
  message.topic_data.emplace_back().partition_data.resize(static_cast<std::size_t>(partitions));
  ByteBuffer bytes = protocol::encode(message, 9).flatten().value();
  Request request{.version = 9, .size = bytes.size()};
  wire::Reader body{SharedBytes(std::move(bytes))};
  auto done = decode_request(*find_api(0), body, request);
  if (!done) return tl::unexpected(done.error());
  return request;
}

TEST(ApiTable, WhatARequestNamesIsBoundAndCounted) {
  const auto one = decoded_produce(1);
  ASSERT_TRUE(one);
  EXPECT_LT(one->memory, one->size + 4 * kKiB) << "the queue has room for hundreds of them";
  const auto many = decoded_produce(10000);
  ASSERT_TRUE(many);
  EXPECT_GT(many->memory, 10000u * 600) << "six bytes of the request stand for so much";
  const auto absurd = decoded_produce(100000);
  ASSERT_FALSE(absurd);
  EXPECT_NE(absurd.error().message.find("too much memory"), std::string::npos);
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
