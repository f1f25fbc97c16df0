// The parts of WordPiece and Unigram tokenizers, tested separately.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "formats/tokenizer_score.h"
#include "tokenizer/base64.h"
#include "tokenizer/graphemes.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/utf8.h"
#include "tokenizer_vectors.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

// The clusters of a text, separated by bars.
std::string clusters(std::string_view text) {
  std::string parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = grapheme_end(text, at);
    if (at > 0) parts += '|';
    parts += text.substr(at, end - at);
    at = end;
  }
  return parts;
}

TEST(graphemes, follow_the_rules_of_uax_29) {
  EXPECT_EQ(clusters("ab"), "a|b");
  EXPECT_EQ(clusters("\r\n\r\r\n"), "\r\n|\r|\r\n");
  EXPECT_EQ(clusters("e\u0301\u0302x\n\u0301"), "e\u0301\u0302|x|\n|\u0301");
  EXPECT_EQ(clusters("각\u1100\u1161\u11A8\u1100각각ᅡ"), "각|\u1100\u1161\u11A8|\u1100각|각|ᅡ");
  EXPECT_EQ(clusters("👩\u200d👩\u200d👧👍🏽!"), "👩\u200d👩\u200d👧|👍🏽|!");
  EXPECT_EQ(clusters("👩\u200d\u0301👩"), "👩\u200d\u0301|👩");
  EXPECT_EQ(clusters("a\u200d👩"), "a\u200d|👩");
  EXPECT_EQ(clusters("\u0915\u094d\u0915"), "\u0915\u094d\u0915");
  EXPECT_EQ(clusters("\u0915\u0301\u094d\u0301\u0915x"), "\u0915\u0301\u094d\u0301\u0915|x");
  EXPECT_EQ(clusters("\u0915\u0301\u0915"), "\u0915\u0301|\u0915");
  EXPECT_EQ(clusters("\u0915\u094d\u200c\u0915"), "\u0915\u094d\u200c|\u0915");
  EXPECT_EQ(clusters("\u0600a\u0600\n"), "\u0600a|\u0600|\n");
}

TEST(graphemes, places_that_always_break_do) {
  const std::u32string codes =
      U"a \r\n\t\u0301\u200c\u200d\u094d\u0915\u093f\u0600\u1100\u1161\u11A8\uAC00\uAC01\u00A9";
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    std::vector<std::pair<char32_t, size_t>> places;
    for (int i = 0; i < 6; ++i) {
      const char32_t code = codes[random() % codes.size()];
      append_utf8(code, text);
      places.emplace_back(code, text.size());
    }
    std::vector<bool> ends(text.size() + 1, false);
    for (size_t at = 0; at < text.size();) ends[at = grapheme_end(text, at)] = true;
    for (size_t i = 0; i + 1 < places.size(); ++i)
      if (graphemes_always_break(places[i].first, places[i + 1].first)) {
        ASSERT_TRUE(ends[places[i].second]) << text << " at " << places[i].second;
      }
  }
}

TEST(base64, decodes_what_is_whole) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("TWFu"), "Man");
  EXPECT_EQ(decode_base64("TWE="), "Ma");
  EXPECT_EQ(decode_base64("+/8="), "\xFB\xFF");
  for (const char* bad : {"T", "TW", "TWF", "TW==TWFu", "T===", "====", "TWF!", "TWF=", " TWF", "TWFu\n"})
    EXPECT_FALSE(decode_base64(bad)) << bad;
}

TEST(scores, are_read_as_serde_json_reads_them) {
  EXPECT_EQ(parse_token_score("-1.5"), -1.5);
  EXPECT_EQ(parse_token_score("0"), 0);
  EXPECT_EQ(parse_token_score("25e-1"), 2.5);
  EXPECT_EQ(parse_token_score("-1E+2"), -100);
  EXPECT_EQ(parse_token_score("1e-400"), 0);
  EXPECT_EQ(parse_token_score("0e99999999999999999999"), 0);
  // May be one unit in the last place from the nearest number.
  EXPECT_EQ(parse_token_score("-8.474337369372327"), -8474337369372327.0 / 1e15);
  EXPECT_EQ(parse_token_score("-3.3087200000000001"), -33087200000000001.0 / 1e16);
  // Digits beyond 64 bits are dropped; before the point they still count as places.
  EXPECT_EQ(parse_token_score("1.84467440737095516159"), 18446744073709551615.0 / 1e19);
  EXPECT_EQ(parse_token_score("184467440737095516159"), 18446744073709551615.0 * 10);
}

// A Unigram tokenizer of these pieces, without a pre-tokenizer.
Tokenizer unigram(const std::string& vocab, const std::string& more = "") {
  return Tokenizer::from_json(R"({"model":{"type":"Unigram","unk_id":0,"vocab":)" + vocab + more + "}}", "unigram");
}

TEST(unigram, takes_the_best_sum_and_the_earlier_begin_of_equal_ones) {
  const Tokenizer tokenizer = unigram(R"([["<unk>",0],["a",-1],["b",-1],["ab",-2],["abc",-9],["bc",-1]])");
  EXPECT_EQ(tokenizer.encode("ab", false), (Ids{3}));  // -2, from the start, found first
  EXPECT_EQ(tokenizer.encode("abc", false), (Ids{1, 5}));
  EXPECT_EQ(tokenizer.encode("c", false), (Ids{0}));
  EXPECT_EQ(tokenizer.encode("ccac c", false), (Ids{0, 1, 0}));
  EXPECT_EQ(tokenizer.encode("", false), (Ids{}));
}

TEST(unigram, spells_unknown_characters_by_bytes_only_if_all_have_tokens) {
  const std::string vocab = R"([["<unk>",0],["<0xC3>",-1],["<0xA9>",-1],["x",-1]])";
  const Tokenizer tokenizer = unigram(vocab, R"(,"byte_fallback":true)");
  EXPECT_EQ(tokenizer.encode("éx", false), (Ids{1, 2, 3}));
  EXPECT_EQ(tokenizer.encode("éèx", false), (Ids{0, 3}));  // one run of unknown characters
  EXPECT_EQ(tokenizer.encode("éxè", false), (Ids{1, 2, 3, 0}));
}

TEST(unigram, carries_sums_across_cuts_within_a_word) {
  std::vector<Json> golden = golden_models();
  const auto found = std::find_if(golden.begin(), golden.end(), [](const Json& j) { return j["name"] == "rounding"; });
  ASSERT_NE(found, golden.end());
  const Tokenizer tokenizer = Tokenizer::from_json(found->at("tokenizer").dump(), "rounding");
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 60'000) text += "abxe"[random() % 4];
  int64_t forced_cuts = 0;
  EXPECT_EQ(encode_in_chunks(tokenizer, text, 313, 4096, forced_cuts), tokenizer.encode(text, true));
}

TEST(word_piece, is_unknown_as_a_whole_or_not_at_all) {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"model":{"type":"WordPiece","unk_token":"?","max_input_chars_per_word":5,"continuing_subword_prefix":"##",
         "vocab":{"?":0,"a":1,"##a":2,"##ab":3,"##b":4,"é":5,"##é":6,"##":7}},
         "pre_tokenizer":{"type":"WhitespaceSplit"},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true}})",
      "words");
  EXPECT_EQ(tokenizer.encode("aab", false), (Ids{1, 3}));
  EXPECT_EQ(tokenizer.encode("aac a", false), (Ids{0, 1}));
  EXPECT_EQ(tokenizer.encode("ééééé", false), (Ids{5, 6, 6, 6, 6}));  // five characters, ten bytes
  EXPECT_EQ(tokenizer.encode("aaaaaa", false), (Ids{0}));
  EXPECT_EQ(tokenizer.encode("##a b", false), (Ids{2, 0}));  // the token itself; no token starts with b
  EXPECT_EQ(tokenizer.decode(Ids{1, 2, 1, 4}), "aa ab");
}

TEST(stream_encoder, one_word_without_an_end_stays_bounded) {
  for (const Json& entry : golden_tokenizers()) {
    const auto name = entry.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = Tokenizer::from_json(entry.at("tokenizer").dump(), name);
    for (const char* unit : {"e", "\u0301", "中", "\u0915\u094d"}) {
      std::string text;
      while (text.size() < 9000) text += unit;
      int64_t forced_cuts = 0;
      const Ids ids = encode_in_chunks(tokenizer, text, 1000, 2048, forced_cuts);
      if (forced_cuts == 0) {
        EXPECT_EQ(ids, tokenizer.encode(text, true)) << unit;
      }
    }
  }
}

}  // namespace
}  // namespace headroom
