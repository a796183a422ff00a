#include "agent/source.h"

#include <random>

#include "base/assert.h"

namespace weir::agent {

std::string random_source_id() {
  constexpr char kLetters[] = "0123456789abcdefghijklmnopqrstuv";
  std::random_device device;
  std::string id;
  while (id.size() < 14) {
    auto random = device();
    for (int i = 0; i < 6 && id.size() < 14; ++i, random >>= 5) id += kLetters[random % 32];
  }
  return id;
}

std::uint64_t Source::admit(std::uint64_t end) {
  std::lock_guard lock(mutex_);
  items_.push_back({end});
  return first_ + items_.size() - 1;
}

void Source::take_back() {
  std::lock_guard lock(mutex_);
  WEIR_ASSERT(!items_.empty() && !items_.back().settled);
  items_.pop_back();
}

void Source::pass(std::uint64_t end) {
  std::lock_guard lock(mutex_);
  (items_.empty() ? position_ : items_.back().end) = end;
}

void Source::settle(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  WEIR_ASSERT(number >= first_ && number - first_ < items_.size());
  items_[number - first_].settled = true;
  while (!items_.empty() && items_.front().settled) {
    position_ = items_.front().end;
    items_.pop_front();
    ++first_;
  }
}

std::uint64_t Source::position() const {
  std::lock_guard lock(mutex_);
  return position_;
}

std::size_t Source::outstanding() const {
  std::lock_guard lock(mutex_);
  return items_.size();
}

}  // namespace weir::agent
