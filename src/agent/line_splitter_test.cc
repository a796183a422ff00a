#include "agent/line_splitter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace weir::agent {
namespace {

struct Kept : EntryTaker {
  struct Line {
    std::string text;
    std::uint64_t position, end;
    bool truncated, unterminated;
    auto operator<=>(const Line&) const = default;
  };
  std::vector<Line> lines;
  std::uint64_t passed = 0;
  std::size_t room = SIZE_MAX;
  bool take(const Entry& e) override {
    if (room == 0) return false;
    --room;
    lines.push_back({std::string(e.text), e.position, e.end, e.truncated, e.unterminated});
    return true;
  }
  void pass(std::uint64_t end) override { passed = end; }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const auto& line : lines) all.push_back(line.text);
    return all;
  }
};

/// Offers `text` as a reader with this buffer would, until nothing moves.
void feed(LineSplitter& splitter, const std::string& text, std::size_t buffer, Kept& kept) {
  while (splitter.position() < text.size()) {
    if (splitter.split(std::string_view(text).substr(splitter.position(), buffer), kept) == 0) break;
  }
}

TEST(LineSplitter, LongLineIsTruncatedOrSkippedAndItsNeighboursSurvive) {
  const std::string text = "A\n" + std::string(1024 * 1024, 'x') + "\nB\n";
  Kept cut, skipped;
  LineSplitter truncate(64 * kKiB, LongLines::kTruncate, 0), skip(64 * kKiB, LongLines::kSkip, 0);
  feed(truncate, text, 70'000, cut);
  feed(skip, text, 70'000, skipped);
  ASSERT_EQ(cut.lines.size(), 3u);
  EXPECT_EQ(cut.lines[1].text.size(), 64 * kKiB);
  EXPECT_TRUE(cut.lines[1].truncated);
  EXPECT_EQ(cut.lines[1].end, 2u);  // a crash inside the long line reads it again
  EXPECT_EQ(skipped.texts(), (std::vector<std::string>{"A", "B"}));
  for (const auto* splitter : {&truncate, &skip}) {
    EXPECT_EQ(splitter->position(), text.size());
    EXPECT_EQ(splitter->long_lines(), 1u);
  }
}

TEST(LineSplitter, LongLineIsNotCutInsideACharacter) {
  for (const std::string character : {"\u00e9", "\u20ac", "\U0001f600"}) {
    std::string text;
    while (text.size() < 300) text += character;
    for (Bytes limit = 100; limit < 104; ++limit) {
      Kept kept;
      LineSplitter splitter(limit, LongLines::kTruncate, 0);
      feed(splitter, text + "\n", 1000, kept);
      ASSERT_EQ(kept.lines.size(), 1u);
      EXPECT_EQ(kept.lines[0].text, text.substr(0, limit / character.size() * character.size()));
    }
  }
  Kept kept;
  LineSplitter splitter(100, LongLines::kTruncate, 0);
  feed(splitter, std::string(200, '\x80') + "\n", 1000, kept);
  EXPECT_EQ(kept.lines[0].text, std::string(100, '\x80')) << "not UTF-8";
}

TEST(LineSplitter, RunOfNulsIsNotALongLineAndShortOnesStay) {
  const std::string hole(4096, '\0');
  const std::string text = "a\n" + hole + "text after\nb\n";
  Kept kept;
  LineSplitter splitter(100, LongLines::kTruncate, 0);
  feed(splitter, text, 1000, kept);
  EXPECT_EQ(kept.texts(), (std::vector<std::string>{"a", "text after", "b"}));
  EXPECT_EQ(kept.lines[1].position, 2 + 4096u);
  EXPECT_EQ(splitter.long_lines(), 0u);
  Kept whole;
  LineSplitter wide(64 * kKiB, LongLines::kTruncate, 0);
  feed(wide, text, 100'000, whole);
  EXPECT_EQ(whole.lines[1].text, hole + "text after");
}

RC_GTEST_PROP(LineSplitter, AnyBufferAndAnyRoomGivesTheSameLines, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n', '\n', '\r', '\0'));
  const std::size_t limit = *rc::gen::inRange(3, 12);
  Kept expected;
  LineSplitter reference(limit, LongLines::kTruncate, 0);
  feed(reference, text, SIZE_MAX, expected);

  Kept kept;
  LineSplitter splitter(limit, LongLines::kTruncate, 0);
  const std::size_t buffer = *rc::gen::inRange<std::size_t>(limit + 3, limit + 20);
  for (int i = 0; i < 1000 && splitter.position() < text.size(); ++i) {
    kept.room = *rc::gen::inRange(1, 4);
    if (splitter.split(std::string_view(text).substr(splitter.position(), buffer), kept) == 0) break;
  }
  RC_ASSERT(splitter.position() == reference.position());
  RC_ASSERT(kept.texts() == expected.texts());
  for (const auto& line : kept.lines) RC_ASSERT(text.substr(line.position, line.text.size()) == line.text);
}

}  // namespace
}  // namespace weir::agent
