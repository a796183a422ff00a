#include "sink/dead_letters.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace weir::sink {
namespace {

std::int32_t number(const std::optional<std::string>& text) {
  std::int32_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

}  // namespace

Record dead_letter_of(const ConsumedRecord& record, const std::string& topic, std::string_view reason,
                      std::int32_t attempts) {
  Record out{
      .topic = topic, .key = record.key, .value = record.value, .timestamp = record.timestamp, .lane = Lane::kHigh};
  for (const Header& header : record.headers) {
    if (header.name == fmt::format("{}attempts", kDeadLetterPrefix)) attempts += number(header.value);
    if (!header.name.starts_with(kDeadLetterPrefix)) out.headers.push_back(header);
  }
  const auto add = [&out](std::string_view name, std::string value) {
    out.headers.push_back({fmt::format("{}{}", kDeadLetterPrefix, name), std::move(value)});
  };
  add("topic", record.partition.topic);
  add("partition", std::to_string(record.partition.partition.value));
  add("offset", std::to_string(record.offset.value));
  add("timestamp", std::to_string(to_unix_ms(record.timestamp)));
  add("reason", std::string(reason));
  add("attempts", std::to_string(attempts));
  return out;
}

Result<void> DeadLetters::send(const ConsumedRecord& record, std::string_view reason, std::int32_t attempts) {
  Record letter = dead_letter_of(record, topic_, reason, attempts);
  Answer answer{record.partition, record.assignment, record.offset};
  const SendResult sent = producer_.send(letter, Duration::zero(), [box = box_, answer](Delivery& delivery) mutable {
    answer.acked = delivery.status == Delivery::Status::kAcked;
    if (!answer.acked) answer.detail = fmt::format("{} {}", delivery.reason, delivery.detail);
    std::lock_guard lock(box->mutex);
    box->answers.push_back(std::move(answer));
  });
  if (!sent.accepted())
    return fail(sent.outcome == SendOutcome::kRejected ? ErrorKind::kInvalid : ErrorKind::kUnavailable,
                fmt::format("{} {}", to_string(sent.outcome), sent.reason));
  return {};
}

std::vector<DeadLetters::Answer> DeadLetters::collect() {
  std::lock_guard lock(box_->mutex);
  return std::exchange(box_->answers, {});
}

}  // namespace weir::sink
