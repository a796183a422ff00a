// One file being followed: reads from its position, notices truncation and rewriting, waits for unfinished lines.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "agent/checkpoint.h"
#include "agent/line_splitter.h"
#include "agent/source.h"
#include "runtime/file.h"

namespace weir::agent {

/// What tells files apart while they exist: device and inode.
using FileKey = std::pair<std::uint64_t, std::uint64_t>;

/// Keeps no bytes of the file between reads but the last few before its position, which tell whether the file is still
/// the one it was. Owned by the reading thread.
class FollowedFile {
 public:
  /// `mark`: where an earlier run stood in this very file; empty source: a file never seen.
  FollowedFile(runtime::Path path, std::shared_ptr<runtime::File> file, const runtime::FileStatus& status,
               const FileMark& mark, const AgentSettings& settings, MonoTime now);

  enum class Outcome : std::uint8_t {
    kIdle,     ///< read to its end
    kMore,     ///< there is more to read
    kNoRoom,   ///< the taker had none
    kRenewed,  ///< found truncated or rewritten: a new source, from its start
  };
  /// Reads at most `buffer` (at least line limit + 1 KiB) once and offers the lines in it.
  Result<Outcome> read(MonoTime now, std::string& buffer, EntryTaker& taker);
  /// Notices growth and deletion without reading: also behind a closed gate.
  void look(MonoTime now);
  /// Somebody else saw that it is this long now.
  void grew_to(std::uint64_t size, MonoTime now);
  /// Sends what is left without a line end. At the end of a rotated file, or of all (`once`). False: no room.
  Result<bool> finish(std::string& buffer, EntryTaker& taker);
  /// Gives its descriptor back and keeps the rest. Not read or looked at until reopen(), which takes the same file.
  void close();
  void reopen(runtime::Path path, std::shared_ptr<runtime::File> file);

  const std::shared_ptr<Source>& source() const { return source_; }
  const runtime::Path& path() const { return path_; }
  void renamed(runtime::Path path) { path_ = std::move(path); }
  FileKey key() const { return {device_, inode_}; }
  std::int64_t birth() const { return birth_; }

  /// Where the file stands now, for the checkpoint.
  FileMark mark() const;
  std::uint64_t read_to() const { return splitter_.position(); }
  std::uint64_t unread() const { return size_ > splitter_.position() ? size_ - splitter_.position() : 0; }
  bool at_end() const { return unread() == 0; }
  bool deleted() const { return deleted_; }
  MonoTime grown_at() const { return grown_at_; }
  std::uint64_t long_lines() const { return long_lines_ + splitter_.long_lines(); }
  std::uint64_t long_line_at() const { return splitter_.long_line_at(); }
  /// Bytes that were there, unread, when the file was last found truncated.
  std::uint64_t lost_bytes() const { return lost_bytes_; }

  // -- kept for who follows
  bool rotated = false;         ///< no input names it any more
  bool long_line_said = false;  ///< people have been told of its first
  bool had_turn = false;        ///< read since it was opened
  MonoTime opened_at{};
  MonoTime closed_at{};
  MonoTime next_look{};
  Duration look_period{};

 private:
  void renew(const runtime::FileStatus& status, std::uint64_t old_size, MonoTime now);
  Result<bool> is_same() const;
  void learn_head();
  bool flush_due(MonoTime now) const;

  runtime::Path path_;
  std::shared_ptr<runtime::File> file_;  // empty while closed
  const AgentSettings& settings_;
  std::uint64_t device_;
  std::uint64_t inode_;
  std::int64_t birth_;
  std::shared_ptr<Source> source_;
  LineSplitter splitter_;
  std::string tail_;  // the bytes before the position
  std::uint64_t size_ = 0;
  std::uint64_t seen_size_ = 0;  // and when it was modified, when it was last seen to be the same file
  WallTime seen_modified_{};
  std::uint64_t partial_size_ = 0;  // size at which an unfinished line was last seen
  MonoTime grown_at_;
  bool deleted_ = false;
  std::uint64_t head_length_ = 0;
  std::uint64_t head_hash_ = 0;
  std::uint64_t long_lines_ = 0;  // of earlier sources
  std::uint64_t lost_bytes_ = 0;
};

}  // namespace weir::agent
