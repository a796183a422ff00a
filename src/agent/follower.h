// The follower: which files there are, which of them are the same, and whose turn it is to be read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/followed_file.h"
#include "base/log.h"

namespace weir::agent {

/// Finds files by name once a period, also while nothing may be read, and follows them by inode: a renamed file is read
/// to its end under its new name or none. When there are more than may be open, they are read in turn. Owned by the
/// reading thread.
class Follower {
 public:
  Follower(const AgentSettings& settings, runtime::FileSystem& files) : settings_(settings), files_(files) {}

  /// Where an earlier run stood. Also finds its files that were renamed meanwhile. Fails when an input is neither a
  /// file nor a directory, and with `once` when one is missing or cannot be read.
  Result<void> open(std::vector<FileMark> marks, MonoTime now);
  /// Looks for new and rotated files. Cheap when nothing changed.
  void scan(MonoTime now);

  class SourceTaker : public EntryTaker {
   public:
    /// What comes next is of this source. False: nothing of it may come yet.
    virtual bool source(const std::shared_ptr<Source>& source) = 0;
  };
  /// Reads every file whose turn it is, one buffer each, until the taker has no room. False when there was none.
  bool read(MonoTime now, std::string& buffer, SourceTaker& taker);
  /// When a file is due to be looked at again.
  MonoTime next_look() const;

  /// `once`: true when every file has been read to its end, its last line included.
  bool through() const { return settings_.once && open_.empty() && scanned_ && waiting_ == 0; }
  /// Marks of everything known, for the checkpoint.
  std::vector<FileMark> marks();

  struct Counts {
    std::size_t files = 0;
    std::uint64_t unread_bytes = 0;
    std::uint64_t deleted_open_bytes = 0;
    std::uint64_t truncations = 0;
    metrics::Reasons lost_bytes;
    std::uint64_t long_lines = 0;
  };
  Counts counts() const;

 private:
  using FilePtr = std::unique_ptr<FollowedFile>;
  struct Found {
    runtime::Path path;
    runtime::FileStatus status;
    bool rotated = false;  // no longer under the name that is followed
  };
  /// The files that have had one followed name. When the name changes hands, what lies beside it, is not known and was
  /// not there before has had it in between: a file rotated away between two looks.
  struct Lineage {
    std::optional<FileKey> last;
    std::int64_t last_birth = 0;
    std::set<FileKey> beside;  // there when the name was last seen with `last`
    bool looked = false;       // `beside` is known
  };
  struct Skipped {
    std::set<std::string> compressed, binary, unreadable, own, deep;
  };

  std::vector<Found> find(Skipped& skipped);
  using Visited = std::map<FileKey, int>;  // directories, and how many levels below each were looked at
  void find_in(const runtime::Path& directory, int depth, Visited& visited, std::vector<Found>& found,
               Skipped& skipped);
  void find_missed(const runtime::Path& path, const runtime::FileStatus* status, std::vector<Found>& found);
  bool known(const runtime::FileStatus& status) const;
  bool is_text(const runtime::Path& path, const runtime::FileStatus& status, Skipped& skipped);
  /// Fails when it cannot be read; a file that is followed already is no failure. False: no other can wait for it.
  Result<bool> follow(const Found& found, MonoTime now);
  void follow_in_turn(std::vector<const Found*> unread, MonoTime now);
  bool make_room(MonoTime now);
  void say_unreadable(const runtime::Path& path, std::string_view why, MonoTime now);
  bool is_read(const runtime::FileStatus& status) const;
  std::unique_ptr<FollowedFile> take_closed(const runtime::FileStatus& status, MonoTime now);
  FileMark take_mark(const Found& found, const runtime::File& file);
  void note_skipped(Skipped skipped);
  void give_up_deleted(MonoTime now);
  void forget_gone(MonoTime now);
  void let_go(std::size_t index, MonoTime now);
  void forget(const FollowedFile& file, MonoTime now);

  const AgentSettings& settings_;
  runtime::FileSystem& files_;
  std::vector<FilePtr> open_;  // in the order of opening
  std::set<FileKey> open_keys_;
  std::vector<FileMark> earlier_;  // of an earlier run, not met yet
  /// Read through and let go, or waiting for their turn; an input may still name them.
  struct Closed {
    FilePtr file;
    std::optional<MonoTime> gone_since;  // no directory names it since then
  };
  std::map<FileKey, Closed> closed_;
  /// Whether it was text, when it was looked at.
  struct Judged {
    bool text = false;
    std::int64_t birth = 0;  // 0: of any
    std::uint64_t size = 0;
    WallTime modified{};
  };
  std::map<FileKey, Judged> judged_;
  /// What the last scan saw.
  struct Seen {
    std::set<FileKey> files;
    std::set<runtime::Path> unlisted;  // directories that could not be read
    bool input_missing = false;
  };
  Seen seen_;
  std::map<runtime::Path, Lineage> lineages_;  // of inputs that are files
  // -- of the last scan: those there was no room for
  std::size_t waiting_ = 0;
  std::uint64_t waiting_bytes_ = 0;  // of those never opened
  std::set<FileKey> owed_;           // of those that were rotated away: no input names them again

  std::size_t turn_ = 0;
  bool scanned_ = false;
  Skipped skipped_said_;
  std::set<FileKey> own_;  // files and directories
  bool crowd_noted_ = false;
  std::set<runtime::Path> missing_noted_;
  log::Every unreadable_log_{std::chrono::seconds(1)};
  log::Every long_line_log_{std::chrono::seconds(1)};
  log::Every gone_log_{std::chrono::seconds(1)};
  Counts gone_;  // of files let go
};

}  // namespace weir::agent
