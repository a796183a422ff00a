#include "agent/account.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "client/log_entry.h"

namespace weir::agent {

namespace {
constexpr std::size_t kRejectedKept = 1000;
constexpr Bytes kRejectFileLimit = 64 * kMiB;
}  // namespace

void Account::read(Bytes bytes) {
  std::lock_guard lock(mutex_);
  ++tally_.read;
  ++tally_.in_memory;
  read_bytes_ += bytes;
}

void Account::unread(Bytes bytes) {
  std::lock_guard lock(mutex_);
  --tally_.read;
  --tally_.in_memory;
  read_bytes_ -= bytes;
}

void Account::settle(Source& source, std::uint64_t number, Delivery& delivery) {
  switch (delivery.status) {
    case Delivery::Status::kAcked: {
      source.settle(number);
      std::lock_guard lock(mutex_);
      ++tally_.acked;
      --tally_.in_memory;
      return;
    }
    case Delivery::Status::kRejected: reject(source, number, delivery.reason, delivery.detail, delivery.record); return;
    case Delivery::Status::kUndelivered: return;  // stays in memory as far as anybody knows: the position does not move
  }
}

void Account::reject(Source& source, std::uint64_t number, std::string_view reason, std::string_view detail,
                     const Record& record) {
  {
    std::lock_guard lock(mutex_);
    ++tally_.rejected[std::string(reason)];
    --tally_.in_memory;
    if (rejected_.size() < kRejectedKept) {
      std::string position;
      for (const Header& header : record.headers) {
        if (header.name == client::kPositionHeader) position = header.value.value_or("");
      }
      rejected_.push_back({source.id(), source.name(), std::move(position), std::string(reason), std::string(detail),
                           record.value.value_or("")});
    }
  }
  source.settle(number);
}

void Account::shed(std::string_view reason) {
  std::lock_guard lock(mutex_);
  ++tally_.read;
  ++tally_.shed[std::string(reason)];
}

metrics::AgentTally Account::tally() const {
  std::lock_guard lock(mutex_);
  return tally_;
}

Bytes Account::read_bytes() const {
  std::lock_guard lock(mutex_);
  return read_bytes_;
}

std::deque<RejectedEntry> Account::take_rejected() {
  std::lock_guard lock(mutex_);
  return std::exchange(rejected_, {});
}

void RejectFile::write(const std::deque<RejectedEntry>& entries) {
  std::string lines;
  for (const RejectedEntry& entry : entries) {
    lines += nlohmann::json{{"source", entry.source}, {"name", entry.name},     {"position", entry.position},
                            {"reason", entry.reason}, {"detail", entry.detail}, {"value", entry.value}}
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    lines += '\n';
  }
  auto file = files_.open(path_, runtime::OpenMode::kCreate);
  auto done = !file ? Result<void>(tl::unexpected(file.error())) : (*file)->size().and_then([&](std::uint64_t size) {
    if (size + lines.size() > kRejectFileLimit) return Result<void>(fail(ErrorKind::kNoSpace, "it has reached 64 MiB"));
    return (*file)->append(as_bytes(lines)).and_then([&] { return (*file)->sync(); }).and_then([&] {
      return size > 0 ? Result<void>() : files_.sync_directory(path_.parent_path());
    });
  });
  if (!done && !std::exchange(failed_, true)) {
    log::warn("{}: rejected entries are counted but no longer kept: {}", path_.string(), done.error().message);
  }
}

}  // namespace weir::agent
