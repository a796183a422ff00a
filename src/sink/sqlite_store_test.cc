#include "sink/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "runtime/temp_directory.h"

namespace weir::sink {
namespace {

using testing::HasSubstr;

const TopicPartition kP0{"logs", PartitionId(0)};

struct SqliteFile {
  runtime::TempDirectory directory;
  std::filesystem::path file = directory / "logs.db";
  std::unique_ptr<Store> open() {
    auto store = open_sqlite_store(file);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
};

Row row(const TopicPartition& partition, std::int64_t offset, std::optional<std::string_view> source, std::int64_t pos,
        std::string_view message = "m") {
  return {.partition = &partition,
          .offset = Offset(offset),
          .server_id = "s",
          .level = "INFO",
          .message = message,
          .timestamp = 1,
          .source = source,
          .source_pos = pos};
}

TEST(SqliteStore, RowsAndPositionsGoTogetherAndSurvive) {
  SqliteFile f;
  {
    auto store = f.open();
    const std::string nul("a\0b", 3);
    const std::vector<Row> rows = {row(kP0, 0, "a", 0, nul), row(kP0, 1, "a", 10, ""), row(kP0, 2, "a", 10),
                                   row(kP0, 3, std::nullopt, 0), row(kP0, 4, std::nullopt, 0)};
    const Written written = store->write(rows, {{kP0, Offset(5)}});
    ASSERT_EQ(written.kind, Written::Kind::kDone) << written.error.message;
    EXPECT_EQ(written.duplicate, (std::vector<bool>{false, false, true, false, false}));
    EXPECT_TRUE(store->set_cluster("c1"));
    EXPECT_TRUE(store->set_topic_id("logs", "x"));
  }
  auto store = f.open();
  EXPECT_EQ(*store->topic_ids(), (TopicIds{{"logs", "x"}}));
  EXPECT_EQ(*store->positions(), (Positions{{kP0, Offset(5)}}));
  EXPECT_EQ(*store->cluster(), "c1");
}

TEST(SqliteStore, ADatabaseFromBeforeTopicIdsGetsThem) {
  SqliteFile f;
  f.open();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(f.file.c_str(), &raw), SQLITE_OK);
  const char* before = "DROP TABLE topics; INSERT INTO positions VALUES('logs', 0, 7)";
  ASSERT_EQ(sqlite3_exec(raw, before, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  auto store = f.open();
  EXPECT_EQ(*store->positions(), (Positions{{kP0, Offset(7)}}));
  EXPECT_TRUE(store->topic_ids()->empty());
  EXPECT_TRUE(store->set_topic_id("logs", "x"));
  EXPECT_EQ(*f.open()->topic_ids(), (TopicIds{{"logs", "x"}}));
}

TEST(SqliteStore, TheSamePlaceWithAnotherSourceIsAnErrorAndNothingIsWritten) {
  SqliteFile f;
  auto store = f.open();
  ASSERT_EQ(store->write(std::vector{row(kP0, 0, "a", 0)}, {{kP0, Offset(1)}}).kind, Written::Kind::kDone);
  for (const Row& other : {row(kP0, 0, "b", 0), row(kP0, 0, "a", 7), row(kP0, 0, std::nullopt, 0)}) {
    const Written written = store->write(std::vector{row(kP0, 1, "a", 1), other}, {{kP0, Offset(2)}});
    EXPECT_EQ(written.kind, Written::Kind::kBroken);
    EXPECT_THAT(written.error.message, testing::AllOf(HasSubstr("logs/0 offset 0"), HasSubstr("--data")));
  }
  EXPECT_EQ(*store->positions(), (Positions{{kP0, Offset(1)}}));
  // The very same record again is a duplicate, with and without a source.
  EXPECT_EQ(store->write(std::vector{row(kP0, 0, "a", 0)}, {}).duplicate, std::vector<bool>{true});
  ASSERT_EQ(store->write(std::vector{row(kP0, 9, std::nullopt, 0)}, {}).kind, Written::Kind::kDone);
  EXPECT_EQ(store->write(std::vector{row(kP0, 9, std::nullopt, 0)}, {}).duplicate, std::vector<bool>{true});
}

TEST(SqliteStore, AFileThatIsRemovedOrReplacedIsNotWrittenInto) {
  SqliteFile f;
  for (const bool replaced : {false, true}) {
    auto store = f.open();
    ASSERT_EQ(store->write(std::vector{row(kP0, 0, "a", 0)}, {}).kind, Written::Kind::kDone);
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(f.file.string() + end);
    if (replaced) std::ofstream(f.file) << "";
    const Written written = store->write(std::vector{row(kP0, 1, "a", 1)}, {});
    EXPECT_EQ(written.kind, Written::Kind::kBroken);
    EXPECT_THAT(written.error.message, HasSubstr("was removed or replaced"));
    store.reset();
    std::filesystem::remove(f.file);
  }
}

TEST(SqliteStore, WhatIsNoDatabaseIsSaid) {
  runtime::TempDirectory directory;
  const auto missing = open_sqlite_store(directory / "no" / "logs.db");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no/logs.db"));
}

}  // namespace
}  // namespace weir::sink
