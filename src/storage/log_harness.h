// What the tests of this folder share: a log in a file system that forgets, and batches to put into it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/memory_file_system.h"
#include "storage/log_directory.h"
#include "wire/record_batch.h"

namespace weir::storage {

// What is cut and rebuilt on purpose, thousands of times, is not worth a line each.
inline const bool kQuiet = [] {
  log::set_level(log::Level::kError);
  return true;
}();

struct Produced {
  std::int64_t timestamp = 1000;
  ProducerId producer = kNoProducerId;
  std::int16_t epoch = 0;
  std::int32_t sequence = 0;
  wire::Codec codec = wire::Codec::kNone;
};

inline ByteBuffer batch_of(const std::vector<std::string>& values, const Produced& p = {}) {
  const bool has = p.producer != kNoProducerId;
  wire::BatchBuilder builder({.codec = p.codec,
                              .producer_id = p.producer,
                              .producer_epoch = static_cast<std::int16_t>(has ? p.epoch : -1),
                              .base_sequence = has ? p.sequence : -1});
  for (const auto& value : values) builder.add(p.timestamp, std::nullopt, as_bytes(value));
  return builder.build();
}

/// One partition, "t-0" in "/data".
struct LogHarness {
  explicit LogHarness(LogOptions o = {}) : options(o) { open(); }
  ~LogHarness() { close_handles(); }

  void open() {
    close_handles();
    auto opened = LogDirectory::open(files, "/data");
    ASSERT_TRUE(opened) << opened.error().message;
    directory = std::move(*opened);
    auto found = directory->open_log({"t", PartitionId(0)}, options, now);
    ASSERT_TRUE(found) << found.error().message;
    log = *found;
  }
  void close_handles() {
    log.reset();
    directory.reset();
  }
  void clean_restart() {
    ASSERT_TRUE(directory->close(now));
    open();
  }
  void killed() {
    files.kill();
    open();
  }

  Result<Appended> append(ByteView batches, std::optional<std::int64_t> stamp = {}) {
    return log->append({.batches = batches, .leader_epoch = 3, .log_append_ms = stamp}, now);
  }
  Offset append(const std::vector<std::string>& values, const Produced& p = {}) {
    auto done = append(batch_of(values, p));
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->base_offset : kNoOffset;
  }
  Result<void> sync() {
    const SyncPoint point = log->prepare_sync();
    const auto outcome = point.work();
    log->synced(point, outcome);
    return outcome;
  }
  void checkpoint() { ASSERT_TRUE(directory->checkpoint()()); }

  /// The records of whole batches in a slice, each checked with its CRC.
  static std::vector<wire::BatchHeader> batches(const Slice& slice, std::vector<std::string>* values = nullptr) {
    std::vector<wire::BatchHeader> headers;
    const auto bytes = slice.payload.flatten();
    EXPECT_TRUE(bytes);
    for (ByteView rest = *bytes; !rest.empty();) {
      const auto header = wire::check_batch(rest);
      EXPECT_TRUE(header) << header.error().message;
      if (!header) break;
      headers.push_back(*header);
      auto records = wire::RecordReader::open(rest.first(header->size()), kMiB);
      while (const auto record = records->next()) {
        if (values != nullptr) values->emplace_back(as_text(*record->value));
      }
      rest = rest.subspan(header->size());
    }
    return headers;
  }
  /// Every value from the start to the end, read in steps of at most `step` bytes.
  std::vector<std::string> values(Bytes step = 1000) {
    std::vector<std::string> all;
    for (Offset at = log->start_offset(); at < log->end_offset();) {
      auto slice = log->read(at, step, log->end_offset());
      EXPECT_TRUE(slice) << slice.error().message;
      if (!slice || slice->next <= at) {
        ADD_FAILURE() << "no progress at " << at.value;
        break;
      }
      const auto headers = batches(*slice, &all);
      EXPECT_EQ(headers.front().base_offset, at);
      EXPECT_EQ(headers.back().next_offset(), slice->next);
      at = slice->next;
    }
    return all;
  }
  std::uint64_t file_size(const std::string& name) { return files.status("/data/t-0/" + name)->size; }
  std::shared_ptr<runtime::File> file(const std::string& name) {
    return files.open("/data/t-0/" + name, runtime::OpenMode::kWrite).value();
  }

  runtime::MemoryFileSystem files;
  LogOptions options;
  WallTime now = ManualClock().now().wall;
  std::unique_ptr<LogDirectory> directory;
  std::shared_ptr<Log> log;
};

inline constexpr const char* kFirstLog = "00000000000000000000.log";
inline constexpr const char* kFirstIndex = "00000000000000000000.index";
inline constexpr const char* kFirstTimeIndex = "00000000000000000000.timeindex";

}  // namespace weir::storage
