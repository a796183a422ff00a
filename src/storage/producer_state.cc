#include "storage/producer_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/crc32c.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace weir::storage {
namespace {

// The file: int16 version, uint32 CRC-32C of what follows it, int32 count, entries.
constexpr std::int16_t kVersion = 1;
constexpr Bytes kEntriesAt = 6;
constexpr Bytes kEntrySize = 46;

std::int32_t next_sequence(std::int32_t sequence) { return sequence == INT32_MAX ? 0 : sequence + 1; }

}  // namespace

ProducerState::Verdict ProducerState::check(const wire::BatchHeader& batch) const {
  if (!batch.has_producer() || batch.control()) return {};
  const auto found = producers_.find(batch.producer_id);
  if (found == producers_.end()) return {};
  const Producer& producer = found->second;
  if (batch.producer_epoch < producer.epoch) return {.check = SequenceCheck::kFencedEpoch};
  if (batch.producer_epoch > producer.epoch)
    return {.check = batch.base_sequence == 0 ? SequenceCheck::kOk : SequenceCheck::kOutOfOrder};
  for (std::size_t i = 0; i < producer.count; ++i) {
    const Batch& old = producer.batches[i];
    if (old.last_sequence == batch.last_sequence() && old.offset_delta == batch.last_offset_delta)
      return {SequenceCheck::kDuplicate, old.last_offset - std::int64_t{old.offset_delta}, old.last_offset,
              old.timestamp};
  }
  const bool follows = batch.base_sequence == next_sequence(producer.last().last_sequence);
  return {.check = follows ? SequenceCheck::kOk : SequenceCheck::kOutOfOrder};
}

void ProducerState::update(const wire::BatchHeader& batch) {
  if (!batch.has_producer() || batch.control()) return;
  remember(batch.producer_id, batch.producer_epoch,
           {batch.last_sequence(), batch.last_offset_delta, batch.last_offset(), batch.max_timestamp});
}

void ProducerState::remember(ProducerId id, std::int16_t epoch, const Batch& batch) {
  Producer& producer = producers_[id];
  if (epoch != producer.epoch) producer = {.epoch = epoch};
  if (producer.count == kRemembered) {
    std::rotate(producer.batches.begin(), producer.batches.begin() + 1, producer.batches.end());
    --producer.count;
  }
  producer.batches[producer.count++] = batch;
}

void ProducerState::expire(std::int64_t before) {
  std::erase_if(producers_, [&](const auto& entry) { return entry.second.last().timestamp < before; });
}

ByteBuffer ProducerState::encode() const {
  std::size_t entries = 0;
  for (const auto& [id, producer] : producers_) entries += producer.count;
  wire::Writer out(kEntriesAt + 4 + entries * kEntrySize);
  out.int16(kVersion);
  out.uint32(0);
  out.int32(static_cast<std::int32_t>(entries));
  for (const auto& [id, producer] : producers_) {
    for (std::size_t i = 0; i < producer.count; ++i) {
      const Batch& batch = producer.batches[i];
      out.int64(id.value);
      out.int16(producer.epoch);
      out.int32(batch.last_sequence);
      out.int64(batch.last_offset.value);
      out.int32(batch.offset_delta);
      out.int64(batch.timestamp);
      out.int32(-1);  // coordinator epoch: no transaction
      out.int64(-1);  // first offset of an open transaction
    }
  }
  out.patch_int32(2, static_cast<std::int32_t>(wire::crc32c(out.view().subspan(kEntriesAt))));
  return out.take();
}

Result<ProducerState> ProducerState::decode(ByteView bytes) {
  wire::Reader in(bytes);
  const std::int16_t version = in.int16();
  const std::uint32_t crc = in.uint32();
  if (!in.ok() || version != kVersion)
    return fail(ErrorKind::kInvalid, fmt::format("a producer snapshot of version {}, {} is known", version, kVersion));
  if (wire::crc32c(bytes.subspan(kEntriesAt)) != crc)
    return fail(ErrorKind::kInvalid, "the producer snapshot's checksum does not fit its bytes");
  ProducerState state;
  for (std::int32_t left = in.int32(); left > 0 && in.ok(); --left) {
    const ProducerId id(in.int64());
    const std::int16_t epoch = in.int16();
    Batch batch;
    batch.last_sequence = in.int32();
    batch.last_offset = Offset(in.int64());
    batch.offset_delta = in.int32();
    batch.timestamp = in.int64();
    in.skip(4 + 8);
    if (in.ok() && batch.last_offset.value >= 0) state.remember(id, epoch, batch);
  }
  if (auto whole = in.result(); !whole) return tl::unexpected(whole.error());
  return state;
}

}  // namespace weir::storage
