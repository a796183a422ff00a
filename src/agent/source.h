// A source: one file or stream as records name it, and how far its entries have been acknowledged.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace weir::agent {

/// 14 random letters and digits, 70 bits: each record carries it, so it is short.
std::string random_source_id();

/// Entries are admitted in the order of the file and settled in any order; the position moves over the settled
/// beginning only. admit(), take_back() and pass() belong to the reading thread, the rest may be called from any.
class Source {
 public:
  /// `name` is for people (a path, "stdin"); `start` where reading begins.
  Source(std::string id, std::string name, std::uint64_t start)
      : id_(std::move(id)), name_(std::move(name)), position_(start) {}

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }

  /// An entry that ends at `end` goes on its way; the number to settle it by.
  std::uint64_t admit(std::uint64_t end);
  /// The last one admitted did not go after all.
  void take_back();
  /// Everything up to `end` that was not admitted (a skipped line, the rest of a truncated one) needs no
  /// acknowledgement of its own: it goes with the entry before it.
  void pass(std::uint64_t end);
  void settle(std::uint64_t number);

  /// Everything before this has been settled.
  std::uint64_t position() const;
  std::size_t outstanding() const;

 private:
  struct Item {
    std::uint64_t end;
    bool settled = false;
  };
  const std::string id_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::deque<Item> items_;
  std::uint64_t first_ = 0;  // number of items_.front()
  std::uint64_t position_;
};

}  // namespace weir::agent
