#include "storage/record_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "wire/crc32c.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace weir::storage {
namespace {

// The file: eight bytes that name the format, then records of {uint32 length, uint32 CRC-32C of the payload, payload}.
constexpr std::string_view kMagic = "weirlog1";
constexpr Bytes kHead = 8;
constexpr Bytes kMaxFile = kGiB;

void write_record(wire::Writer& out, ByteView payload) {
  out.uint32(static_cast<std::uint32_t>(payload.size()));
  out.uint32(wire::crc32c(payload));
  out.raw(payload);
}

/// The payload of the record at the front of `bytes`; nothing when it is torn or damaged.
std::optional<ByteView> read_record(ByteView bytes) {
  if (bytes.size() < kHead) return std::nullopt;
  wire::Reader in(bytes);
  const std::uint32_t length = in.uint32();
  const std::uint32_t crc = in.uint32();
  if (length == 0 || length > RecordLog::kMaxPayload || length > in.remaining()) return std::nullopt;
  const ByteView payload = in.view(length);
  if (wire::crc32c(payload) != crc) return std::nullopt;
  return payload;
}

}  // namespace

Result<RecordLog> RecordLog::open(runtime::FileSystem& files, const runtime::Path& path,
                                  const std::function<Result<void>(ByteView payload)>& replay) {
  RecordLog log(files, path);
  ByteBuffer bytes;
  if (files.exists(path)) {
    auto read = files.read_all(path, kMaxFile);
    if (!read) return tl::unexpected(read.error());
    bytes = std::move(*read);
  }
  const ByteView all(bytes);
  const std::string_view head = as_text(all.first(std::min(all.size(), kMagic.size())));
  if (head.size() == kMagic.size() && head != kMagic && head != std::string_view("\0\0\0\0\0\0\0\0", 8))
    return fail(ErrorKind::kInvalid, fmt::format("{} is not one of weir's record files: move it away", path.string()));
  if (head != kMagic) {  // new, or its first write was torn
    if (auto made = log.rewrite({}); !made) return tl::unexpected(made.error());
    return log;
  }
  Bytes end = kMagic.size();  // of the last whole record
  Bytes skipped = 0;          // damaged bytes before it
  for (Bytes at = end; at < all.size();) {
    const auto payload = read_record(all.subspan(at));
    if (!payload) {
      ++at;
      continue;
    }
    skipped += at - end;
    if (auto replayed = replay(*payload); !replayed) return tl::unexpected(replayed.error());
    at += kHead + payload->size();
    end = at;
    ++log.records_;
  }
  if (skipped > 0) log::error("{}: {} damaged bytes between whole records were skipped", path.string(), skipped);
  auto file = files.open(path, runtime::OpenMode::kWrite);
  if (!file) return tl::unexpected(file.error());
  log.file_ = std::move(*file);
  log.size_ = end;
  if (end < all.size()) {
    log::warn("{}: {} bytes of an unfinished record cut off", path.string(), all.size() - end);
    if (auto cut = log.file_->truncate(end); !cut) return tl::unexpected(cut.error());
    if (auto synced = log.file_->sync(); !synced) return tl::unexpected(synced.error());
  }
  return log;
}

Result<void> RecordLog::append(ByteView payload) {
  if (payload.empty() || payload.size() > kMaxPayload)
    return fail(ErrorKind::kInvalid, fmt::format("{}: a record of {} bytes, 1 to {} are allowed", path_.string(),
                                                 payload.size(), kMaxPayload));
  wire::Writer out(kHead + payload.size());
  write_record(out, payload);
  if (auto written = file_->write_at(size_, out.view()); !written) {
    if (auto cut = file_->truncate(size_); !cut) return cut;
    return written;
  }
  size_ += out.size();
  ++records_;
  return {};
}

DiskWork RecordLog::prepare_sync() {
  return [file = file_] { return file->sync(); };
}

Result<void> RecordLog::append_durably(ByteView payload) {
  return append(payload).and_then([&] { return file_->sync(); });
}

Result<void> RecordLog::rewrite(std::span<const ByteBuffer> payloads) {
  wire::Writer out;
  out.raw(as_bytes(kMagic));
  for (const auto& payload : payloads) write_record(out, payload);
  if (auto replaced = files_->replace(path_, out.view()); !replaced) return replaced;
  auto file = files_->open(path_, runtime::OpenMode::kWrite);
  if (!file) return tl::unexpected(file.error());
  file_ = std::move(*file);
  size_ = out.size();
  records_ = payloads.size();
  return {};
}

}  // namespace weir::storage
