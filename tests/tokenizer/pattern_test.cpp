#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "tokenizer/normal_form.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> matches(const Pattern& pattern, std::string_view text, bool generally = false) {
  std::vector<std::string> found;
  for (size_t at = 0;;) {
    const auto match = generally ? pattern.find_generally(text, at) : pattern.find(text, at);
    if (!match) return found;
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
}

std::vector<std::string> matches(const char* pattern, std::string_view text) {
  return matches(Pattern::compile(pattern, "test"), text);
}

using Words = std::vector<std::string>;

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"a",      "Z",      "é", "中", "\u0301", "1",  "½",      "٣",
                                                   "'",      "s",      "S", "ſ",  "L",      "l",  "r",      "e",
                                                   "d",      " ",      " ", "\t", "\n",     "\r", "\u00a0", "\u3000",
                                                   "\u2028", "\u0085", "!", "-",  "_",      "🎉",  "\u200d", "\u0000"};
  std::string text;
  for (size_t i = random() % 14; i > 0; --i) text += kPieces[random() % kPieces.size()];
  return text;
}

TEST(pattern, scanners_agree_with_the_general_matcher) {
  std::mt19937 random(5);
  for (const char* text : {kGpt2Pattern.data(), kQwen2, kLlama3}) {
    ASSERT_NE(recognise_pattern(text), KnownPattern::none);
    const Pattern pattern = Pattern::compile(text, "test");
    for (int i = 0; i < 6000; ++i) {
      const std::string sample = random_text(random);
      ASSERT_EQ(matches(pattern, sample), matches(pattern, sample, true)) << sample;
    }
  }
}

TEST(pattern, gpt2_splits_as_published) {
  EXPECT_EQ(matches(kGpt2Pattern.data(), "I'll go  home\n\n  now, 42nd!? "),
            (Words{"I", "'ll", " go", " ", " home", "\n\n ", " now", ",", " 42", "nd", "!?", " "}));
}

TEST(pattern, syntax) {
  EXPECT_EQ(matches("a|b+", "abbc"), (Words{"a", "bb"}));
  EXPECT_EQ(matches("a{2,3}", "aaaaaa a"), (Words{"aaa", "aaa"}));
  EXPECT_EQ(matches("a{2}", "aaaaa"), (Words{"aa", "aa"}));
  EXPECT_EQ(matches("a{,2}b", "aaab"), (Words{"aab"}));
  EXPECT_EQ(matches("a{x", "a{x"), (Words{"a{x"}));
  EXPECT_EQ(matches("<.+?>", "<a><b>"), (Words{"<a>", "<b>"}));
  EXPECT_EQ(matches("a?+a", "aa a"), (Words{"aa"}));
  EXPECT_EQ(matches("(?:ab)+c", "ababc abab"), (Words{"ababc"}));
  EXPECT_EQ(matches("(?>a|ab)c", "abc ac"), (Words{"ac"}));
  EXPECT_EQ(matches("(a|b)*?c", "abc"), (Words{"abc"}));
  EXPECT_EQ(matches("a(?=b)", "abac"), (Words{"a"}));
  EXPECT_EQ(matches("(?<!b)a", "aba"), (Words{"a"}));
  EXPECT_EQ(matches("(?<=b)a", "aba"), (Words{"a"}));
  EXPECT_EQ(matches("^a|b$", "a\nab\nb"), (Words{"a", "a", "b", "b"}));
  EXPECT_EQ(matches("\\Aa|b\\z", "ab\nab"), (Words{"a", "b"}));
  EXPECT_EQ(matches("[^a-c\\]x]", "abd]xe"), (Words{"d", "e"}));
  EXPECT_EQ(matches("[\\d_-]+", "12_-x"), (Words{"12_-"}));
  EXPECT_EQ(matches("\\x41|\\u00e9|\\x{1F389}", "Aé🎉"), (Words{"A", "é", "🎉"}));
  EXPECT_EQ(matches("\\p{Lu}\\P{L}\\p{^N}", "A-x a-x"), (Words{"A-x"}));
  EXPECT_EQ(matches("(?i:k's)", "K'ſ \u212A's"), (Words{"K'ſ", "\u212A's"}));
  EXPECT_EQ(matches(".", "a\nb"), (Words{"a", "b"}));
}

TEST(pattern, what_is_not_supported_is_refused_by_name) {
  for (const char* text : {"(",
                           ")",
                           "[a",
                           "[]",
                           "[b-a]",
                           "\\p{Han}",
                           "\\p",
                           "\\",
                           "\\b",
                           "\\1",
                           "(?<name>a)",
                           "(?m:a)",
                           "[a&&b]",
                           "[[:alpha:]]",
                           "(?<=ab)c",
                           "a*",
                           "(a*)*b",
                           "",
                           "a{3,2}",
                           "a{0}",
                           "a{2000}",
                           "*a",
                           "((((a{900}){900}){900}){900})",
                           "(?=a)",
                           "(?=(a*)*)b"}) {
    try {
      Pattern::compile(text, "file: place");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::format);
      EXPECT_EQ(std::string(error.what()).rfind("file: place", 0), 0U) << error.what();
    }
  }
}

TEST(pattern, hostile_repetition_ends_with_an_error) {
  const Pattern pattern = Pattern::compile("(a|aa)+b", "test");
  EXPECT_THROW(pattern.find(std::string(2000, 'a'), 0), Error);
}

// Wherever keeps_apart() is true, matching the two parts gives the same as matching the whole.
TEST(pattern, cuts_where_it_says_that_nothing_is_joined) {
  std::mt19937 random(9);
  for (const char* text : {kGpt2Pattern.data(), kQwen2, kLlama3, "\\s+$", "\\s?\\p{L}+", "^a|é", "(?<=a)1|a",
                           "a(?![1-])|-", "\\d{2,3}", "a\\z|1"}) {
    const Pattern pattern = Pattern::compile(text, "test");
    int cuts = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::string sample = random_text(random);
      for (size_t at = 1; at < sample.size(); ++at) {
        if ((static_cast<unsigned char>(sample[at]) & 0xC0) == 0x80) continue;
        const char32_t left = decode_utf8(sample, previous_utf8(sample, at)).code, right = decode_utf8(sample, at).code;
        if (!pattern.keeps_apart(left, right)) continue;
        ++cuts;
        Words parts = matches(pattern, sample.substr(0, at));
        const Words second = matches(pattern, sample.substr(at));
        if (pattern.always_matches(right)) {
          ASSERT_TRUE(!second.empty() && sample.substr(at).rfind(second[0], 0) == 0) << sample << ' ' << at;
        }
        parts.insert(parts.end(), second.begin(), second.end());
        ASSERT_EQ(parts, matches(pattern, sample)) << text << " on " << sample << " at " << at;
      }
    }
    EXPECT_GT(cuts, 100) << text;
  }
}

TEST(unicode, categories) {
  using unicode::Category;
  EXPECT_EQ(unicode::category('A'), Category::Lu);
  EXPECT_EQ(unicode::category(0x1C5), Category::Lt);
  EXPECT_EQ(unicode::category(0x4E2D), Category::Lo);
  EXPECT_EQ(unicode::category(0x2A700), Category::Lo);
  EXPECT_EQ(unicode::category(0x301), Category::M);
  EXPECT_EQ(unicode::category(0xE0100), Category::M);
  EXPECT_EQ(unicode::category(0xBD), Category::No);
  EXPECT_EQ(unicode::category(0x1F389), Category::S);
  EXPECT_EQ(unicode::category(0x10FFFF), Category::other);
  EXPECT_EQ(unicode::category(0x110000), Category::other);
  EXPECT_TRUE(unicode::is_space(0x3000));
  EXPECT_FALSE(unicode::is_space(0x180E));
  EXPECT_FALSE(unicode::is_space(0x200B));
  EXPECT_TRUE(unicode::in_categories(0x1C89, unicode::kLetter));  // new in Unicode 16.0
}

TEST(normal_form, the_four_forms) {
  const std::string text = "e\u0301 \u1E9B\u0323 \uFB01 한 \u1112\u1161\u11AB a\u0316\u0301 \u212B \u0344 \uFDFA";
  EXPECT_EQ(NormalFormConverter(NormalForm::nfc).convert(text),
            "é \u1E9B\u0323 \uFB01 한 한 á\u0316 \u00C5 \u0308\u0301 \uFDFA");
  EXPECT_EQ(NormalFormConverter(NormalForm::nfd).convert("é한ṩ"), "e\u0301\u1112\u1161\u11ABs\u0323\u0307");
  EXPECT_EQ(NormalFormConverter(NormalForm::nfkc).convert("\u1E9B\u0323 \uFB01 ①２"), "\u1E69 fi 12");
  EXPECT_EQ(NormalFormConverter(NormalForm::nfkd).convert("ﬁ\u00A0é"), "fi e\u0301");
  EXPECT_EQ(NormalFormConverter(NormalForm::nfc).convert(""), "");
  EXPECT_EQ(NormalFormConverter(NormalForm::nfc).convert("\u0301"), "\u0301");
}

TEST(normal_form, is_idempotent) {
  for (const NormalForm form : {NormalForm::nfc, NormalForm::nfd, NormalForm::nfkc, NormalForm::nfkd}) {
    const NormalFormConverter converter(form);
    std::string all;
    for (char32_t code = 0; code < 0x30000; ++code)
      if (code < 0xD800 || code > 0xDFFF) append_utf8(code, all += "a");
    const std::string once = converter.convert(all);
    EXPECT_EQ(converter.convert(once), once);
  }
}

}  // namespace
}  // namespace headroom
