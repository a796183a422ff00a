#include "agent/followed_file.h"

#include <algorithm>
#include <utility>

namespace weir::agent {

namespace {
constexpr Bytes kTailBytes = 256;
}  // namespace

FollowedFile::FollowedFile(runtime::Path path, std::shared_ptr<runtime::File> file, const runtime::FileStatus& status,
                           const FileMark& mark, const AgentSettings& settings, MonoTime now)
    : path_(std::move(path)),
      file_(std::move(file)),
      settings_(settings),
      device_(status.device),
      inode_(status.inode),
      birth_(status.birth.time_since_epoch().count()),
      source_(std::make_shared<Source>(mark.source.empty() ? random_source_id() : mark.source, path_.string(),
                                       mark.source.empty() ? 0 : mark.position)),
      splitter_(settings.line_limit, settings.long_lines, source_->position()),
      size_(status.size),
      grown_at_(now) {
  if (mark.source.empty()) return;
  head_length_ = mark.head_length;
  head_hash_ = mark.head_hash;
}

/// Other content under the same inode: positions of the old one mean nothing any more.
void FollowedFile::renew(const runtime::FileStatus& status, std::uint64_t old_size, MonoTime now) {
  lost_bytes_ = old_size - std::min(old_size, splitter_.position());
  long_lines_ += splitter_.long_lines();
  source_ = std::make_shared<Source>(random_source_id(), path_.string(), 0);
  splitter_ = LineSplitter(settings_.line_limit, settings_.long_lines, 0);
  tail_.clear();
  size_ = status.size;
  seen_size_ = 0;
  partial_size_ = 0;
  head_length_ = 0;
  grown_at_ = now;
}

bool FollowedFile::flush_due(MonoTime now) const {
  return partial_size_ == size_ && !at_end() && now - grown_at_ >= settings_.flush_after;
}

void FollowedFile::look(MonoTime now) {
  const auto status = file_->status();
  if (!status) return;
  deleted_ = status->links == 0;
  grew_to(status->size, now);
}

void FollowedFile::grew_to(std::uint64_t size, MonoTime now) {
  if (size <= size_) return;
  size_ = size;
  grown_at_ = now;
}

void FollowedFile::close() { file_.reset(); }

void FollowedFile::reopen(runtime::Path path, std::shared_ptr<runtime::File> file) {
  path_ = std::move(path);
  file_ = std::move(file);
  look_period = Duration::zero();
  next_look = {};
}

Result<FollowedFile::Outcome> FollowedFile::read(MonoTime now, std::string& buffer, EntryTaker& taker) {
  const auto status = file_->status();
  if (!status) return tl::unexpected(status.error());
  deleted_ = status->links == 0;
  const bool touched = status->size != seen_size_ || status->modified != seen_modified_;
  if (status->size < splitter_.position()) {
    renew(*status, size_, now);
    return Outcome::kRenewed;
  }
  if (touched) {
    const auto same = is_same();
    if (!same) return tl::unexpected(same.error());
    if (!*same) {
      // How much of what is there now was there before nobody can tell; what was seen then is known.
      renew(*status, seen_size_, now);
      return Outcome::kRenewed;
    }
    seen_size_ = status->size;
    seen_modified_ = status->modified;
  }
  if (status->size != size_) {
    size_ = status->size;
    grown_at_ = now;
  }
  // An unfinished line is looked at again only when there is more of it, or when it has waited long enough.
  const bool unfinished = partial_size_ == size_ && !at_end();
  if (at_end() || (unfinished && !flush_due(now))) return Outcome::kIdle;

  const std::uint64_t from = splitter_.position() - tail_.size();
  const auto got = file_->read_at(from, std::as_writable_bytes(std::span(buffer)));
  if (!got) return tl::unexpected(got.error());
  std::string_view bytes(buffer.data(), *got);
  if (!bytes.starts_with(tail_)) {
    renew(*status, splitter_.position(), now);
    return Outcome::kRenewed;
  }
  const std::string_view fresh = bytes.substr(tail_.size());
  Bytes used = splitter_.split(fresh, taker);
  const bool to_the_end = from + *got >= size_;
  bool room = true;
  if (used < fresh.size() && to_the_end && flush_due(now) && fresh.find('\n', used) == std::string_view::npos) {
    room = splitter_.flush(fresh.substr(used), taker);
    if (room) used = fresh.size();
  } else if (used < fresh.size()) {
    // Either no room, or an unfinished line.
    room = fresh.find('\n', used) == std::string_view::npos && fresh.size() - used <= settings_.line_limit + 1;
  }
  const Bytes end = tail_.size() + used;
  tail_ = std::string(bytes.substr(end - std::min(end, kTailBytes), std::min(end, kTailBytes)));
  partial_size_ = room && used < fresh.size() && to_the_end ? size_ : 0;
  learn_head();
  if (!room) return Outcome::kNoRoom;
  return to_the_end ? Outcome::kIdle : Outcome::kMore;
}

Result<bool> FollowedFile::finish(std::string& buffer, EntryTaker& taker) {
  if (at_end() || splitter_.skipping()) return true;
  // What was appended since the last read may hold line ends: not part of this line.
  const Bytes length = std::min<Bytes>({buffer.size(), unread(), settings_.line_limit});
  const auto got = file_->read_at(splitter_.position(), std::as_writable_bytes(std::span(buffer).first(length)));
  if (!got) return tl::unexpected(got.error());
  return splitter_.flush(std::string_view(buffer.data(), *got), taker);
}

FileMark FollowedFile::mark() const {
  FileMark mark{.path = path_.string(),
                .source = source_->id(),
                .device = device_,
                .inode = inode_,
                .birth = birth_,
                .position = source_->position()};
  mark.head_length = head_length_;
  mark.head_hash = head_hash_;
  return mark;
}

/// Whether what has been read is there still, as far as its first and last bytes tell.
Result<bool> FollowedFile::is_same() const {
  if (head_length_ > 0) {
    const auto hash = head_hash(*file_, head_length_);
    if (!hash && hash.error().kind != ErrorKind::kInvalid) return tl::unexpected(hash.error());
    if (!hash || *hash != head_hash_) return false;
  }
  std::string tail(tail_.size(), '\0');
  const auto got = file_->read_at(splitter_.position() - tail.size(), std::as_writable_bytes(std::span(tail)));
  if (!got) return tl::unexpected(got.error());
  return *got == tail.size() && tail == tail_;
}

/// Of what has been read only: that is known to be this file's.
void FollowedFile::learn_head() {
  const std::uint64_t length = std::min<std::uint64_t>(kHeadBytes, splitter_.position());
  if (length <= head_length_) return;
  if (const auto hash = head_hash(*file_, length)) {
    head_length_ = length;
    head_hash_ = *hash;
  }
}

}  // namespace weir::agent
