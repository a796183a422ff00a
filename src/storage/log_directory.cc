#include "storage/log_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "storage/file_cache.h"
#include "storage/log_recovery.h"
#include "storage/segment.h"

namespace weir::storage {
namespace {

constexpr std::string_view kCheckpoint = "recovery-point-offset-checkpoint";
constexpr std::string_view kDeleted = "-delete";
constexpr std::size_t kLongestName = 255;
constexpr Bytes kMaxCheckpoint = 256 * kMiB;

template <typename Number>
bool parse(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Kafka's text: a version, a count, then "topic partition offset" a line. What cannot be read is left out: its
/// partition is then scanned from the start.
std::map<TopicPartition, Offset> parse_checkpoint(std::string_view text) {
  std::map<TopicPartition, Offset> points;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto first = line.find(' '), second = line.rfind(' ');
    if (first == std::string_view::npos || second == first) continue;
    TopicPartition partition{std::string(line.substr(0, first)), PartitionId(0)};
    Offset offset;
    if (parse(line.substr(first + 1, second - first - 1), partition.partition.value) &&
        parse(line.substr(second + 1), offset.value) && offset.value >= 0)
      points[partition] = offset;
  }
  return points;
}

/// "topic-3.<id>-delete", where a long topic is cut: the id says which one it is.
constexpr std::size_t kIdSize = 22;
std::string removed_name(const TopicPartition& partition, const wire::Uuid& topic) {
  const std::string ending = fmt::format("-{}.{}{}", partition.partition.value, wire::to_string(topic), kDeleted);
  return partition.topic.substr(0, kLongestName - ending.size()) + ending;
}
struct Removed {
  wire::Uuid topic;
  PartitionId partition;
};
std::optional<Removed> parse_removed_name(std::string_view name) {
  name.remove_suffix(kDeleted.size());
  if (name.size() <= kIdSize || name[name.size() - kIdSize - 1] != '.') return std::nullopt;
  const auto id = wire::parse_uuid(name.substr(name.size() - kIdSize));
  const auto partition = parse_directory_name(name.substr(0, name.size() - kIdSize - 1));
  if (!id || !partition) return std::nullopt;
  return Removed{*id, partition->partition};
}

}  // namespace

std::string directory_name(const TopicPartition& partition) {
  return fmt::format("{}-{}", partition.topic, partition.partition.value);
}

std::optional<TopicPartition> parse_directory_name(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  TopicPartition partition{std::string(name.substr(0, dash)), PartitionId(0)};
  if (!parse(name.substr(dash + 1), partition.partition.value) || partition.partition.value < 0) return std::nullopt;
  return partition;
}

LogDirectory::LogDirectory(runtime::FileSystem& files, runtime::Path path, std::size_t max_open_files)
    : files_(files), path_(std::move(path)), cache_(std::make_unique<FileCache>(files, max_open_files)) {}
LogDirectory::~LogDirectory() = default;

Result<std::unique_ptr<LogDirectory>> LogDirectory::open(runtime::FileSystem& files, runtime::Path path,
                                                         std::size_t max_open_files) {
  std::unique_ptr<LogDirectory> directory(new LogDirectory(files, std::move(path), max_open_files));
  if (auto made = files.make_directories(directory->path_); !made) return tl::unexpected(made.error());
  auto lock = files.lock(directory->path_ / ".lock");
  if (!lock) return tl::unexpected(lock.error());
  directory->lock_ = std::move(*lock);
  if (const auto text = files.read_all(directory->path_ / kCheckpoint, kMaxCheckpoint))
    directory->saved_ = parse_checkpoint(as_text(*text));
  const auto entries = files.list(directory->path_);
  if (!entries) return tl::unexpected(entries.error());
  for (const auto& entry : *entries) {
    if (entry.type != runtime::FileType::kDirectory) continue;
    if (entry.name.ends_with(kDeleted)) {
      directory->half_removed_.push_back(entry.name);
    } else if (auto partition = parse_directory_name(entry.name)) {
      directory->found_.push_back(std::move(*partition));
    }
  }
  std::sort(directory->found_.begin(), directory->found_.end());
  return directory;
}

Result<void> LogDirectory::settle_removals(const std::function<std::string(const wire::Uuid&)>& name_of) {
  for (const std::string& name : std::exchange(half_removed_, {})) {
    const auto removed = parse_removed_name(name);
    const std::string topic = removed ? name_of(removed->topic) : "";
    if (topic.empty()) {
      if (auto done = files_.remove_all(path_ / name); !done) return done;
      continue;
    }
    const TopicPartition partition{topic, removed->partition};
    // What has the name now is of a topic that was made after this one and did not last either.
    const auto work = remove_log(partition, std::nullopt);
    if (!work) return tl::unexpected(work.error());
    if (auto done = (*work)(); !done) return done;
    if (saved_removed_) (void)checkpoint()();  // the recovery point may be that topic's
    const std::string to = directory_name(partition);
    if (auto done = files_.rename(path_ / name, path_ / to); !done) return done;
    log::warn("{}: the deletion of topic '{}' was not durable: it is there again, with its records",
              (path_ / to).string(), topic);
    found_.push_back(partition);
  }
  std::sort(found_.begin(), found_.end());
  saved_removed_ |= std::erase_if(saved_, [&](const auto& point) {
                      return !std::binary_search(found_.begin(), found_.end(), point.first);
                    }) > 0;
  return {};
}

Result<std::shared_ptr<Log>> LogDirectory::open_log(const TopicPartition& partition, const LogOptions& options,
                                                    WallTime now) {
  if (const auto other = unremoved_.find(partition); other != unremoved_.end()) {  // a topic of the same name
    if (auto removed = remove_log(partition, other->second); !removed) return tl::unexpected(removed.error());
  }
  const auto point = saved_.find(partition);
  auto log = LogRecovery::open(*cache_, path_ / directory_name(partition), options,
                               point == saved_.end() ? Offset(0) : point->second, now);
  if (log) logs_[partition] = *log;
  return log;
}

Result<DiskWork> LogDirectory::remove_log(const TopicPartition& partition, const std::optional<wire::Uuid>& topic) {
  const wire::Uuid id = topic ? *topic : wire::random_uuid();  // of no topic: nobody will ask for it
  const runtime::Path to = path_ / removed_name(partition, id);
  if (const auto log = logs_.find(partition); log != logs_.end()) {
    log->second->abandon();
    logs_.erase(log);
  }
  saved_removed_ |= saved_.erase(partition) > 0;
  if (auto renamed = files_.rename(path_ / directory_name(partition), to);
      !renamed && renamed.error().kind != ErrorKind::kNotFound) {
    unremoved_[partition] = id;
    return tl::unexpected(renamed.error());
  }
  unremoved_.erase(partition);
  std::erase(found_, partition);
  return DiskWork([&files = files_, to] { return files.remove_all(to); });
}

Result<runtime::Path> LogDirectory::set_aside(const TopicPartition& partition) {
  const std::string name = directory_name(partition);
  runtime::Path to;
  for (int i = 0; i == 0 || files_.exists(to); ++i) {
    const std::string suffix = i == 0 ? "-stray" : fmt::format(".{}-stray", i);
    to = path_ / (name.substr(0, kLongestName - suffix.size()) + suffix);
  }
  if (auto renamed = files_.rename(path_ / name, to); !renamed) return tl::unexpected(renamed.error());
  saved_removed_ |= saved_.erase(partition) > 0;
  std::erase(found_, partition);
  return to;
}

bool LogDirectory::checkpoint_due() const {
  return saved_removed_ || std::any_of(logs_.begin(), logs_.end(), [&](const auto& entry) {
           const auto saved = saved_.find(entry.first);
           return entry.second->recovery_point() != (saved == saved_.end() ? Offset(0) : saved->second);
         });
}

DiskWork LogDirectory::checkpoint() {
  const bool names_gone = std::exchange(saved_removed_, false);
  for (const auto& [partition, log] : logs_) {
    if (log->recovery_point().value > 0)
      saved_[partition] = log->recovery_point();
    else
      saved_.erase(partition);
  }
  std::string text = fmt::format("0\n{}\n", saved_.size());
  for (const auto& [partition, offset] : saved_)
    text += fmt::format("{} {} {}\n", partition.topic, partition.partition.value, offset.value);
  return [&files = files_, path = path_ / kCheckpoint, text = std::move(text), names_gone] {
    const auto written = files.replace(path, as_bytes(text));
    // Without recovery points the next start scans; with those of another topic it would trust what it must scan.
    if (!written && names_gone) (void)files.remove(path);
    return written;
  };
}

Result<void> LogDirectory::close(WallTime now) {
  Result<void> first_failure;
  std::vector<std::string> postponed;  // why
  for (const auto& [partition, log] : logs_) {
    if (auto closed = log->close(now); !closed) {
      log::error("{}", closed.error().message);
      if (first_failure) first_failure = closed;
    }
    if (const auto& why = log->no_checkpoint()) postponed.push_back(why->message);
  }
  if (!postponed.empty()) {
    log::warn("{}: {} partitions without a new recovery point, the next start will take longer: {}", path_.string(),
              postponed.size(), postponed.front());
  }
  if (auto written = checkpoint()(); !written && first_failure) first_failure = written;
  lock_.reset();
  return first_failure;
}

}  // namespace weir::storage
