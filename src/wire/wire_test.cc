#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <limits>

#include "wire/crc32c.h"
#include "wire/reader.h"
#include "wire/uuid.h"
#include "wire/writer.h"

namespace weir::wire {
namespace {

TEST(Primitives, AreBigEndianAndComeBack) {
  Writer out;
  out.int8(-2);
  out.int16(-2);
  out.uint32(0xfffefdfcu);
  out.int64(std::numeric_limits<std::int64_t>::min());
  out.float64(-0.5);
  EXPECT_EQ(std::to_integer<int>(out.view()[3]), 0xff);
  EXPECT_EQ(std::to_integer<int>(out.view()[6]), 0xfc);
  Reader in(out.view());
  EXPECT_EQ(in.int8(), -2);
  EXPECT_EQ(in.int16(), -2);
  EXPECT_EQ(in.uint32(), 0xfffefdfcu);
  EXPECT_EQ(in.int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(in.float64(), -0.5);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(Varint, ZigzagExamplesOfTheSpecification) {
  const auto bytes = [](std::int64_t v) {
    Writer out;
    out.varlong(v);
    EXPECT_EQ(out.size(), varlong_size(v));
    return std::string(as_text(out.view()));
  };
  EXPECT_EQ(bytes(0), std::string("\0", 1));
  EXPECT_EQ(bytes(-1), "\x01");
  EXPECT_EQ(bytes(1), "\x02");
  EXPECT_EQ(bytes(-64), "\x7f");
  EXPECT_EQ(bytes(64), "\x80\x01");
  EXPECT_EQ(bytes(std::numeric_limits<std::int64_t>::min()), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

RC_GTEST_PROP(Varint, ComesBack, (std::int64_t wide, std::int32_t narrow, std::uint32_t plain)) {
  Writer out;
  out.varlong(wide);
  out.varint(narrow);
  out.varuint(plain);
  Reader in(out.view());
  RC_ASSERT(in.varlong() == wide);
  RC_ASSERT(in.varint() == narrow);
  RC_ASSERT(in.varuint() == plain);
  RC_ASSERT(in.ok() && in.remaining() == 0);
}

TEST(Varint, ThatDoesNotEndOrIsTooWideIsRefused) {
  EXPECT_FALSE([] {
    Reader in(as_bytes("\xff\xff\xff\xff\xff\xff"));
    in.varuint();
    return in.ok();
  }());
  Reader wide(as_bytes("\xff\xff\xff\xff\x1f"));
  wide.varuint();
  EXPECT_FALSE(wide.ok());
}

TEST(Reader, StopsAtTheFirstFaultAndNamesIt) {
  Reader in(
      as_bytes(std::string_view("\x00\x05"
                                "abc",
                                5)));
  EXPECT_EQ(in.string(Form::kClassic), "");
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.int64(), 0);
  EXPECT_EQ(in.remaining(), 0u);
  EXPECT_EQ(in.result().error().kind, ErrorKind::kInvalid);
  EXPECT_NE(in.result().error().message.find("5 bytes are wanted but 3 are left"), std::string::npos);
}

TEST(Reader, TrustsNoLength) {
  for (const std::string_view bytes :
       {std::string_view("\x7f\xff\xff\xff", 4), std::string_view("\x80\x00\x00\x00", 4)}) {
    Reader array(as_bytes(bytes));
    array.nullable_array_length(Form::kClassic);
    EXPECT_FALSE(array.ok());
    Reader blob(as_bytes(bytes));
    blob.nullable_bytes_length(Form::kClassic);
    EXPECT_FALSE(blob.ok());
  }
  Reader compact(as_bytes("\xff\xff\xff\xff\x0f"));
  compact.nullable_array_length(Form::kCompact);
  EXPECT_FALSE(compact.ok());
}

TEST(Strings, NullAndEmptyDifferInBothForms) {
  for (const Form form : {Form::kClassic, Form::kCompact}) {
    Writer out;
    out.nullable_string(std::nullopt, form);
    out.nullable_string("", form);
    out.nullable_string("x", form);
    Reader in(out.view());
    EXPECT_EQ(in.nullable_string(form), std::nullopt);
    EXPECT_EQ(in.nullable_string(form), std::string_view(""));
    EXPECT_EQ(in.nullable_string(form), std::string_view("x"));
    EXPECT_TRUE(in.ok());
  }
}

TEST(Strings, LongerThanKafkaAllowsAreCut) {
  Writer out;
  out.string(std::string(40'000, 'x'), Form::kClassic);
  EXPECT_EQ(Reader(out.view()).string(Form::kClassic).size(), 32767u);
}

TEST(Reader, SharesItsBufferInsteadOfCopying) {
  const SharedBytes whole(to_buffer(as_bytes("headbody")));
  Reader in(whole);
  in.skip(4);
  const SharedBytes body = in.shared(4);
  EXPECT_EQ(as_text(body.view()), "body");
  EXPECT_EQ(body.view().data(), whole.view().data() + 4);
}

TEST(Uuid, TextIsKafkas) {
  Uuid id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(0xf0 + i);
  EXPECT_EQ(to_string(id), "8PHy8_T19vf4-fr7_P3-_w");
  EXPECT_EQ(parse_uuid("8PHy8_T19vf4-fr7_P3-_w"), id);
  EXPECT_EQ(to_string(Uuid{}), "AAAAAAAAAAAAAAAAAAAAAA");
  EXPECT_FALSE(parse_uuid("AAAAAAAAAAAAAAAAAAAAA"));
  EXPECT_FALSE(parse_uuid("AAAAAAAAAAAAAAAAAAAAA="));
  EXPECT_FALSE(parse_uuid("AAAAAAAAAAAAAAAAAAAAAB"));
}

TEST(Uuid, RandomOnesDifferAndComeBack) {
  const Uuid a = random_uuid();
  EXPECT_NE(a, random_uuid());
  EXPECT_NE(to_string(a).front(), '-');
  EXPECT_EQ(parse_uuid(to_string(a)), a);
}

// RFC 3720 B.4.
TEST(Crc32c, VectorsOfTheRfc) {
  ByteBuffer zeros(32), ones(32, std::byte{0xff}), up(32), down(32);
  for (std::size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::byte>(i);
    down[31 - i] = static_cast<std::byte>(i);
  }
  for (auto* crc : {&crc32c, &crc32c_software}) {
    EXPECT_EQ(crc(zeros, 0), 0x8a9136aau);
    EXPECT_EQ(crc(ones, 0), 0x62a8ab43u);
    EXPECT_EQ(crc(up, 0), 0x46dd794eu);
    EXPECT_EQ(crc(down, 0), 0x113fdb5cu);
    EXPECT_EQ(crc(as_bytes("123456789"), 0), 0xe3069283u);
    EXPECT_EQ(crc({}, 0), 0u);
  }
}

// Long enough for the lanes of the hardware version, and not a multiple of them.
TEST(Crc32c, OfLongInputAgreesWithTheTables) {
  ByteBuffer bytes(20'011);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * i) >> 3);
  for (std::size_t n = 3000; n <= bytes.size(); n += 211) {
    const ByteView part = ByteView(bytes).first(n);
    ASSERT_EQ(crc32c(part, 7), crc32c_software(part, 7)) << n;
  }
}

RC_GTEST_PROP(Crc32c, InHardwareInSoftwareAndInPiecesAgrees, (const std::string& text, std::uint16_t cut)) {
  const ByteView bytes = as_bytes(text);
  const ByteView front = bytes.first(cut % (bytes.size() + 1));
  RC_ASSERT(crc32c(bytes) == crc32c_software(bytes));
  RC_ASSERT(crc32c(bytes) == crc32c(bytes.subspan(front.size()), crc32c(front)));
}

}  // namespace
}  // namespace weir::wire
