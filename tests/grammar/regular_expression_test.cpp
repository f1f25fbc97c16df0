#include "grammar/regular_expression.h"

#include <gmock/gmock.h>

#include "grammar/json_schema.h"
#include "text_of.h"

namespace headroom {
namespace {

using testing::HasSubstr;

TEST(RegularExpression, MatchesFromBeginningToEnd) {
  expect_texts(regex("abc"), {"abc"}, {"", "ab", "abcd", "xabc"});
  expect_texts(regex("^abc$"), {"abc"}, {"", "abcd"});
  expect_texts(regex("a|bc|"), {"a", "bc", ""}, {"b", "abc"});
  expect_texts(regex("^a|b$"), {"a", "b"}, {"ab"});
  expect_texts(regex("x(a|b)(?:c|d)y"), {"xacy", "xbdy"}, {"xaby", "xy"});
}

TEST(RegularExpression, Repetitions) {
  expect_texts(regex("a*"), {"", "a", "aaaa"}, {"b"});
  expect_texts(regex("a+b?"), {"a", "aab"}, {"", "b", "abb"});
  expect_texts(regex("a{3}"), {"aaa"}, {"aa", "aaaa"});
  expect_texts(regex("a{2,}"), {"aa", "aaaaa"}, {"a"});
  expect_texts(regex("(ab){1,3}"), {"ab", "ababab"}, {"", "abababab", "aba"});
  expect_texts(regex("a{0}"), {""}, {"a"});
  expect_texts(regex("(a*)*b"), {"b", "aaab"}, {"a"});
  expect_texts(regex("a*?b+?c??"), {"b", "aabc"}, {"a"});
}

TEST(RegularExpression, ClassesAndEscapes) {
  expect_texts(regex("[a-c0_]"), {"a", "b", "c", "0", "_"}, {"d", "1", ""});
  expect_texts(regex("[^a-c]"), {"d", "\n", "é", "漢", "😀"}, {"a", "b", "\xC3", "\xED\xA0\x80"});
  expect_texts(regex("[-a]"), {"-", "a"}, {"b"});
  expect_texts(regex("[a-]"), {"-", "a"}, {"b"});
  expect_texts(regex(R"([\]\\\d])"), {"]", "\\", "7"}, {"d", "["});
  expect_texts(regex(R"(\d\w\s\D\W\S)"), {"1a x-y", "9_\tx y"}, {"aa x-y", "1a xxx"});
  expect_texts(regex(R"(\t\n\r\f\v)"), {"\t\n\r\f\v"}, {"t"});
  expect_texts(regex(R"(\x41\u00e9\.\*\/)"), {"Aé.*/"}, {"Aéx*/"});
  expect_texts(regex("."), {"a", "漢", "😀"}, {"\n", "\r", "", "ab"});
  expect_texts(regex("[α-ω]{2}"), {"αω", "ββ"}, {"α", "ab"});
}

// Every code point, with UTF-8 decoded by hand.
TEST(RegularExpression, RangesOfCodePointsAreExact) {
  const Grammar grammar = regex(R"([\u007e-\u0801\ud7f0-\ue010])");
  const auto utf8 = [](uint32_t code) {
    std::string out;
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    out.push_back(static_cast<char>(lead[tail] | code >> (6 * tail)));
    for (int i = tail - 1; i >= 0; --i) out.push_back(static_cast<char>(0x80 | (code >> (6 * i) & 0x3F)));
    return out;
  };
  for (uint32_t code = 0; code < 0xE100; code = code == 0x900 ? 0xD700 : code + 1) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const bool listed = (code >= 0x7E && code <= 0x801) || (code >= 0xD7F0 && code <= 0xE010);
    ASSERT_EQ(has(grammar, utf8(code)), listed && !surrogate) << code;
  }
  EXPECT_FALSE(has(grammar, "\xC1\xBE")) << "an overlong form";
}

TEST(RegularExpression, RefusesWithTheOffset) {
  const auto message = [](const std::string& text) { return refusal([&] { regex(text); }); };
  EXPECT_THAT(message("ab(?=c)"), HasSubstr("source: byte 4: the only supported group with (?"));
  EXPECT_THAT(message(R"(ab\bc)"), HasSubstr("byte 4: \\b is not supported"));
  EXPECT_THAT(message(R"((a)\1)"), HasSubstr("\\1 is not supported"));
  EXPECT_THAT(message(R"(\p{L})"), HasSubstr("\\p is not supported"));
  EXPECT_THAT(message("(ab"), HasSubstr("byte 3: a ( without its )"));
  EXPECT_THAT(message("ab)"), HasSubstr("a ) without its ("));
  EXPECT_THAT(message("[ab"), HasSubstr("ends too early"));
  EXPECT_THAT(message("[b-a]"), HasSubstr("backwards"));
  EXPECT_THAT(message("[]"), HasSubstr("without characters"));
  EXPECT_THAT(message("*a"), HasSubstr("a repetition of nothing"));
  EXPECT_THAT(message("a**"), HasSubstr("a repetition of a repetition"));
  EXPECT_THAT(message("a{2,1}"), HasSubstr("has no count"));
  EXPECT_THAT(message("a{x}"), HasSubstr("{n}"));
  EXPECT_THAT(message("a{99999}"), HasSubstr("more than 10000"));
  EXPECT_THAT(message("a^b"), HasSubstr("^ and $"));
  EXPECT_THAT(message("(a$|b)c"), HasSubstr("^ and $"));
  EXPECT_THAT(message("\\"), HasSubstr("ends too early"));
  EXPECT_THAT(message("\xFF"), HasSubstr("not UTF-8"));
  EXPECT_THAT(message(std::string(100, '(') + std::string(100, ')')), HasSubstr("groups nest deeper than 64"));
}

TEST(RegularExpression, HostileOnesAreHarmlessOrRefused) {
  const Grammar ambiguous = regex("(a|a)*b");
  EXPECT_TRUE(has(ambiguous, std::string(5000, 'a') + "b"));
  EXPECT_TRUE(has(regex("(a*)*(a*)*(a*)*c"), std::string(5000, 'a') + "c"));
  EXPECT_THAT(refusal([] { regex("((a{1000}){1000}){1000}"); }), HasSubstr("more than 65536 states"));
  EXPECT_THAT(refusal([] { regex("((a{0}){10000}){10000}"); }), HasSubstr("steps to compile"));
  EXPECT_THAT(refusal([] { regex(std::string(300000, 'a')); }), HasSubstr("more than 262144 bytes"));
  EXPECT_THAT(refusal([] { regex("[ab]{10}", GrammarLimits{.states = 8}); }), HasSubstr("more than 8 states"));
}

}  // namespace
}  // namespace headroom
