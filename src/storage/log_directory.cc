#include "storage/log_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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
      if (auto removed = files.remove_all(directory->path_ / entry.name); !removed)
        return tl::unexpected(removed.error());
    } else if (auto partition = parse_directory_name(entry.name)) {
      directory->found_.push_back(std::move(*partition));
    }
  }
  std::sort(directory->found_.begin(), directory->found_.end());
  return directory;
}

Result<std::shared_ptr<Log>> LogDirectory::open_log(const TopicPartition& partition, const LogOptions& options,
                                                    WallTime now) {
  if (unremoved_.contains(partition)) {  // its files are another topic's, of the same name
    if (auto removed = remove_log(partition); !removed) return tl::unexpected(removed.error());
  }
  const auto point = saved_.find(partition);
  auto log = LogRecovery::open(*cache_, path_ / directory_name(partition), options,
                               point == saved_.end() ? Offset(0) : point->second, now);
  if (log) logs_[partition] = *log;
  return log;
}

Result<DiskWork> LogDirectory::remove_log(const TopicPartition& partition) {
  const std::string name = directory_name(partition);
  runtime::Path to;
  do {
    const std::string ending = fmt::format(".{:08x}{}", removals_++, kDeleted);
    to = path_ / (name.substr(0, kLongestName - ending.size()) + ending);
  } while (files_.exists(to));
  if (const auto log = logs_.find(partition); log != logs_.end()) {
    log->second->abandon();
    logs_.erase(log);
  }
  saved_removed_ |= saved_.erase(partition) > 0;
  if (auto renamed = files_.rename(path_ / name, to); !renamed && renamed.error().kind != ErrorKind::kNotFound) {
    unremoved_.insert(partition);
    return tl::unexpected(renamed.error());
  }
  unremoved_.erase(partition);
  std::erase(found_, partition);
  return DiskWork([&files = files_, to] { return files.remove_all(to); });
}

bool LogDirectory::checkpoint_due() const {
  return saved_removed_ || std::any_of(logs_.begin(), logs_.end(), [&](const auto& entry) {
           const auto saved = saved_.find(entry.first);
           return entry.second->recovery_point() != (saved == saved_.end() ? Offset(0) : saved->second);
         });
}

DiskWork LogDirectory::checkpoint() {
  saved_removed_ = false;
  for (const auto& [partition, log] : logs_) {
    if (log->recovery_point().value > 0)
      saved_[partition] = log->recovery_point();
    else
      saved_.erase(partition);
  }
  std::string text = fmt::format("0\n{}\n", saved_.size());
  for (const auto& [partition, offset] : saved_)
    text += fmt::format("{} {} {}\n", partition.topic, partition.partition.value, offset.value);
  return [&files = files_, path = path_ / kCheckpoint, text = std::move(text)] {
    return files.replace(path, as_bytes(text));
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
