#include "broker/topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weir::broker {

void Topics::replay(const TopicRecord& record) {
  const auto [it, added] = topics_.try_emplace(record.name);
  if (!added && it->second.id != record.id) it->second = {};
  it->second.name = record.name;
  it->second.id = record.id;
  it->second.partitions = record.partitions;
}

void Topics::replay(const TopicDeletedRecord& record) {
  const auto it = topics_.find(record.name);
  if (it != topics_.end() && it->second.id == record.id) topics_.erase(it);
}

void Topics::replay(const ConfigRecord& record) {
  if (record.resource_type != kTopicResource) return;
  const auto it = topics_.find(record.resource_name);
  if (it == topics_.end()) return;
  if (record.value) {
    it->second.configs[record.key] = *record.value;
  } else {
    it->second.configs.erase(record.key);
  }
}

const Topic* Topics::find(std::string_view name) const {
  const auto it = topics_.find(name);
  return it == topics_.end() ? nullptr : &it->second;
}

const Topic* Topics::find(const TopicId& id) const {
  const auto it = std::ranges::find_if(topics_, [&](const auto& entry) { return entry.second.id == id; });
  return it == topics_.end() ? nullptr : &it->second;
}

bool Topics::has(const TopicPartition& partition) const {
  const Topic* topic = find(partition.topic);
  return topic != nullptr && partition.partition.value >= 0 && partition.partition.value < topic->partitions;
}

const Topic* Topics::colliding(std::string_view name) const {
  // Metrics write '.' as '_', so Kafka lets no two topics differ in that alone.
  const auto flat = [](std::string_view s) {
    std::string text(s);
    std::ranges::replace(text, '.', '_');
    return text;
  };
  if (name.find_first_of("._") == std::string_view::npos) return nullptr;
  const std::string mine = flat(name);
  const auto it = std::ranges::find_if(
      topics_, [&](const auto& entry) { return entry.first != name && flat(entry.first) == mine; });
  return it == topics_.end() ? nullptr : &it->second;
}

std::optional<std::string> topic_name_fault(std::string_view name) {
  if (name.empty()) return "Topic name is invalid: the empty string is not allowed";
  if (name == "." || name == "..") return fmt::format("Topic name is invalid: '{}' is not allowed", name);
  if (name.size() > 249) {
    return fmt::format("Topic name is invalid: the length of '{}' is longer than the max allowed length 249", name);
  }
  const auto legal = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  if (!std::ranges::all_of(name, legal)) {
    return fmt::format(
        "Topic name is invalid: '{}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
        "and '-'",
        name);
  }
  return std::nullopt;
}

}  // namespace weir::broker
