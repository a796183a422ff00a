#include "broker/properties.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir::broker {
namespace {

using All = std::vector<Property>;

All parse(std::string_view text) {
  auto all = parse_properties(text);
  EXPECT_TRUE(all) << all.error().message;
  return all ? *all : All{};
}

TEST(Properties, AreReadAsJavaReadsThem) {
  // The cases of the documentation of java.util.Properties.load(), and of its edges.
  EXPECT_EQ(parse("Truth = Beauty\n Truth:Beauty\nTruth                    :Beauty"),
            (All{{"Truth", "Beauty", 1}, {"Truth", "Beauty", 2}, {"Truth", "Beauty", 3}}));
  EXPECT_EQ(parse("fruits      apple, banana, pear, \\\n     cantaloupe, \\\n  kiwi\nnext\t1"),
            (All{{"fruits", "apple, banana, pear, cantaloupe, kiwi", 1}, {"next", "1", 4}}));
  EXPECT_EQ(parse("cheeses"), (All{{"cheeses", "", 1}}));
  EXPECT_EQ(parse("a=\nb:\nc \n"), (All{{"a", "", 1}, {"b", "", 2}, {"c", "", 3}}));
  EXPECT_EQ(parse("# no\n  ! no \\\n\n \t\f\nyes=1\r\nalso=2\rlast=3"),
            (All{{"yes", "1", 5}, {"also", "2", 6}, {"last", "3", 7}}));
  EXPECT_EQ(parse("\\:\\= = x"), (All{{":=", "x", 1}}));
  EXPECT_EQ(parse("a\\ b c"), (All{{"a b", "c", 1}}));
  EXPECT_EQ(parse("a == b"), (All{{"a", "= b", 1}}));
  EXPECT_EQ(parse("a : = b"), (All{{"a", "= b", 1}}));
  EXPECT_EQ(parse("a b=c"), (All{{"a", "b=c", 1}}));
  EXPECT_EQ(parse("=x\n:y"), (All{{"", "x", 1}, {"", "y", 2}}));
  EXPECT_EQ(parse("a=b  \t"), (All{{"a", "b  \t", 1}}));
  EXPECT_EQ(parse(R"(a=\t\n\r\f\\\z\"\u0041\u00e9\u20ac\ud83d\ude00)"),
            (All{{"a", "\t\n\r\f\\z\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 1}}));
  EXPECT_EQ(parse("a=C:\\\\\nb=1"), (All{{"a", "C:\\", 1}, {"b", "1", 2}})) << "an even number does not join lines";
  EXPECT_EQ(parse("a=1\\\n#2"), (All{{"a", "1#2", 1}})) << "no comment begins in the middle of a value";
  EXPECT_EQ(parse("a=1\\\r\n  \n2"), (All{{"a", "1", 1}, {"2", "", 3}})) << "an empty line ends what it goes on with";
  EXPECT_EQ(parse("a=1\\"), (All{{"a", "1", 1}}));
  EXPECT_EQ(parse("a\\"), (All{{"a", "", 1}}));
  EXPECT_EQ(parse(""), All{});
  EXPECT_EQ(parse("\\"), All{});
  for (const char* broken : {"a=1\nb=\\u12", "a=1\nb=\\u00g0", "a=1\nb=\\ud83d", "a=1\n\\udc00"}) {
    const auto done = parse_properties(broken);
    ASSERT_FALSE(done) << broken;
    EXPECT_EQ(done.error().message, "2: a broken \\u escape");
  }
}

/// As java.util.Properties.store() writes it, with a separator of choice.
std::string escaped(std::string_view text, bool name) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t' || c == '\f') {
      out += '\\';
      out += c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 'f';
      continue;
    }
    if (std::string_view("\\=:#!").find(c) != std::string_view::npos || (c == ' ' && (name || out.empty())))
      out += '\\';
    out += c;
  }
  return out;
}

RC_GTEST_PROP(Properties, ComeBackAsTheyWere, ()) {
  const auto part = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \\=:#!\n\r\t\f\xc3\xa9u0")));
  const auto pairs = *rc::gen::container<std::vector<std::pair<std::string, std::string>>>(
      rc::gen::pair(rc::gen::nonEmpty(part), part));
  std::string text;
  All expected;
  int line = 1;
  for (const auto& [name, value] : pairs) {
    const auto separator = *rc::gen::element<std::string>("=", ":", " ", "\t= ", " :", "\\\n  =", "=\\\r\n\f");
    text += "# a comment \\\n\n  " + escaped(name, true) + separator + escaped(value, false) + "\n";
    expected.push_back({name, value, line + 2});
    line += 3 + (separator.find('\n') != std::string::npos);
  }
  RC_ASSERT(parse(text) == expected);
}

RC_GTEST_PROP(Properties, AnyTextIsReadOrRefused, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \\\\\\=:#!\n\r\tu0d8")));
  const auto all = parse_properties(text);
  if (!all) return;
  for (const auto& property : *all) RC_ASSERT(property.line >= 1);
}

}  // namespace
}  // namespace weir::broker
