// The agent's books: what was read and what became of it, and the record of what can never be accepted.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "agent/source.h"
#include "metrics/tally.h"
#include "runtime/file.h"
#include "weir/producer.h"

namespace weir::agent {

/// An entry that can never be accepted, with its place, so that somebody can find it.
struct RejectedEntry {
  std::string source;
  std::string name;
  std::string position;
  std::string reason;
  std::string detail;
  std::string value;
};

/// Any thread: entries are read on one and settled on the producer's. Every delivery callback shares it and its source:
/// one may come after the agent's end.
class Account {
 public:
  /// An entry goes to the producer; before send(), since its end may come before send() returns.
  void read(Bytes bytes);
  /// The producer did not take it: it was not read after all.
  void unread(Bytes bytes);
  /// How the producer ended it.
  void settle(Source& source, std::uint64_t number, Delivery& delivery);
  /// Never accepted. It is in take_rejected() before the source's position passes it.
  void reject(Source& source, std::uint64_t number, std::string_view reason, std::string_view detail,
              const Record& record);

  /// Read, and dropped for this reason.
  void shed(std::string_view reason);

  metrics::AgentTally tally() const;
  Bytes read_bytes() const;
  /// Entries rejected since the last call; the rest beyond a thousand is only counted.
  std::deque<RejectedEntry> take_rejected();

 private:
  mutable std::mutex mutex_;
  metrics::AgentTally tally_;
  Bytes read_bytes_ = 0;
  std::deque<RejectedEntry> rejected_;
};

/// Appends to `rejected.jsonl`: one line of JSON each. Stops at 64 MiB. One thread.
class RejectFile {
 public:
  RejectFile(runtime::FileSystem& files, runtime::Path path) : files_(files), path_(std::move(path)) {}
  /// They survive a power cut when this returns, unless it has said why not.
  void write(const std::deque<RejectedEntry>& entries);

 private:
  runtime::FileSystem& files_;
  runtime::Path path_;
  bool failed_ = false;
};

}  // namespace weir::agent
