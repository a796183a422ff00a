#include "client/assigned.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::client {
namespace {

Bytes size_of(const ConsumedRecord& record) {
  Bytes size = sizeof(ConsumedRecord) + record.partition.topic.size();
  if (record.key) size += record.key->size();
  if (record.value) size += record.value->size();
  for (const auto& header : record.headers)
    size += sizeof(Header) + header.name.size() + (header.value ? header.value->size() : 0);
  return size;
}

}  // namespace

std::string name_of(const TopicPartition& partition) {
  return fmt::format("{}-{}", partition.topic, partition.partition.value);
}

void Assigned::add(ConsumedRecord record) {
  ready_bytes_ += size_of(record);
  ready_.push_back(std::move(record));
}

void Assigned::hand_out_returned(std::size_t& room, std::vector<ConsumedRecord>& out) {
  for (; room > 0 && !returned_.empty(); --room) {
    out.push_back(std::move(returned_.front()));
    returned_.pop_front();
  }
}

void Assigned::hand_out_ready(std::size_t& room, std::vector<ConsumedRecord>& out) {
  for (; room > 0 && !ready_.empty(); ready_.pop_front()) {
    ConsumedRecord& record = ready_.front();
    const Bytes size = size_of(record);
    ready_bytes_ -= size;
    if (record.offset < prefix.position()) continue;  // fetched before a seek
    record.assignment = number;
    prefix.handed_out(record.offset, size);
    out.push_back(std::move(record));
    --room;
  }
}

void Assigned::give_back(ConsumedRecord record) {
  if (!prefix.is_open(record.offset)) return;
  const auto place = std::lower_bound(returned_.begin(), returned_.end(), record.offset,
                                      [](const auto& r, Offset o) { return r.offset < o; });
  if (place != returned_.end() && place->offset == record.offset) return;
  returned_.insert(place, std::move(record));
}

void Assigned::drop_returned_before(Offset next) {
  while (!returned_.empty() && returned_.front().offset < next) returned_.pop_front();
}

bool Assigned::update_marks() {
  const bool was_held = marks_.held();
  return marks_.update(static_cast<std::int64_t>(prefix.unfinished())) && !was_held;
}

std::optional<Offset> Assigned::ask_for_prefix() {
  const Offset next = prefix.prefix();
  if (next <= asked.value_or(start)) return std::nullopt;
  asked = next;
  return next;
}

}  // namespace weir::client
