// Keeps `__consumer_offsets` small. What the coordinator holds in memory is all that a partition is there to remember,
// so where Kafka cleans segments, a partition grown far past that gets a snapshot of it, and loses what lies before:
//
//   [old segments][snapshot][later commits]
//
//   1. A segment is begun and every record alive is appended to it, with nothing in between: the core does it in one
//   go.
//   2. When the snapshot is durable, the segments before it are unlinked, the oldest first.
//
// A start replays whatever a crash leaves to the same state. Before 2 that is the old records and some first part of a
// snapshot, which repeats what they say. During 2 it is the later ones of the old segments: a tombstone never goes
// before the value that it buries.
#include <fmt/format.h>

#include <algorithm>

#include "broker/core.h"
#include "broker/core_state.h"
#include "broker/group/coordinator.h"
#include "wire/record_batch.h"

namespace weir::broker {
namespace {
constexpr Bytes kShrinkAbove = 16 * kMiB;  // smaller is not worth it
constexpr Bytes kDeadPerAlive = 4;
constexpr Bytes kSnapshotBatch = 256 * kKiB;
}  // namespace

void Core::shrink(Partition& partition) {
  const std::uint64_t size = partition.log->size();
  const Bytes least = std::min(kShrinkAbove, partition.config.log.segment_bytes);
  if (size <= std::max<Bytes>(partition.shrink_above, least) || partition.snapshot) return;
  const auto records = groups_->live_records(partition.name.partition);
  if (!records) {
    partition.shrink_above = UINT64_MAX;
    return;
  }
  Bytes alive = 0;
  for (const GroupRecord& record : *records) alive += record.key.size() + record.value->size();
  const Bytes dead = std::max(least, kDeadPerAlive * alive);
  partition.shrink_above = alive + dead;
  if (size <= partition.shrink_above) return;

  const Offset from = partition.log->end_offset();
  const auto done = append_snapshot(partition, *records);
  // Also what there is of one that was not finished; the next try is not made at once.
  if (!done) {
    append_refused(fmt::format("{}-{}", kOffsetsTopic, partition.name.partition.value), done.error());
    partition.shrink_above = size + dead / 4;
    return;
  }
  partition.snapshot = Snapshot{from, partition.log->end_offset()};
}

Result<void> Core::append_snapshot(Partition& partition, const std::vector<GroupRecord>& records) {
  if (auto begun = partition.log->begin_segment(); !begun) return begun;
  for (auto record = records.begin(); record != records.end();) {
    wire::BatchBuilder batch;
    for (; record != records.end() && batch.size() < kSnapshotBatch; ++record) {
      batch.add(to_unix_ms(now_.wall), ByteView(record->key), ByteView(*record->value));
    }
    const ByteBuffer bytes = batch.build();
    if (auto done = partition.log->append({.batches = bytes}, now_.wall); !done) return tl::unexpected(done.error());
    appended(partition, bytes.size());
  }
  return {};
}

void Core::snapshot_durable(Partition& partition) {
  if (partition.log->durable_offset() < partition.snapshot->to) return;
  if (auto work = partition.log->drop_before(partition.snapshot->from)) effects_.push_back(Chore{std::move(work)});
  partition.snapshot.reset();
}

}  // namespace weir::broker
