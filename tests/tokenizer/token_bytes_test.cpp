// The bytes of tokens, concatenated, are the decoder's text.
#include "tokenizer/token_bytes.h"

#include <gtest/gtest.h>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "formats/json.h"

namespace headroom {
namespace {

void expect_bytes(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const TokenBytes tokens(tokenizer);
  std::string text;
  for (const int32_t id : ids) {
    std::string bytes = tokens.of(id);
    if (text.empty() && tokens.only_of_first_token()) std::erase(bytes, ' ');
    text += bytes;
  }
  if (!tokens.only_of_first_token())
    text.erase(0, std::min(static_cast<size_t>(tokens.leading_spaces()), text.find_first_not_of(' ')));
  EXPECT_EQ(text, tokenizer.decode(ids));
}

TEST(TokenBytes, AreTheDecodedText) {
  for (const char* text : {"Once upon a time", "é 漢 😀\n\ttabs", " leading", "a"}) {
    for (const Tokenizer& tokenizer : {Tokenizer::bytes(), Tokenizer::load(test::data_file("stories260K"))})
      expect_bytes(tokenizer, tokenizer.encode(text, false));
  }
}

TEST(TokenBytes, SpecialTokensHaveNone) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  const TokenBytes tokens(tokenizer);
  EXPECT_EQ(tokens.of(tokenizer.eos_id().value()), "");
  EXPECT_EQ(tokens.of(999), "");
  EXPECT_EQ(tokens.of(0xC3), "\xC3");
}

TEST(TokenBytes, DecodersThatLookAroundAreRefused) {
  Json json = Json::parse(bytes_tokenizer_json());
  json["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  const Tokenizer tokenizer = Tokenizer::from_json(json.dump(), "test");
  EXPECT_THROW(TokenBytes{tokenizer}, Error);
  json["decoder"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  const TokenBytes metaspace(Tokenizer::from_json(json.dump(), "test"));
  EXPECT_TRUE(metaspace.only_of_first_token());
  EXPECT_GT(metaspace.leading_spaces(), 0);
}

}  // namespace
}  // namespace headroom
