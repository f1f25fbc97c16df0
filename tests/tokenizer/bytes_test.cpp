#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

TEST(bytes_tokenizer, ids_are_bytes_after_bos) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  EXPECT_EQ(tokenizer.vocab_size(), 258);
  EXPECT_EQ(tokenizer.bos_id(), 256);
  EXPECT_EQ(tokenizer.eos_id(), 257);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_FALSE(tokenizer.adds_eos());
  EXPECT_EQ(tokenizer.encode("a", true), (Ids{256, 97}));
  EXPECT_EQ(tokenizer.encode("b", false), (Ids{98}));
  EXPECT_EQ(tokenizer.encode("", true), (Ids{256}));
  EXPECT_EQ(tokenizer.encode("é \n", false), (Ids{0xC3, 0xA9, 32, 10}));
  EXPECT_EQ(tokenizer.encode(std::string_view("\0", 1), false), (Ids{0}));
  EXPECT_EQ(tokenizer.encode("<s>", false), (Ids{256}));
}

TEST(bytes_tokenizer, every_byte_has_its_own_token) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  for (int32_t id = 0; id < 256; ++id) EXPECT_EQ(tokenizer.token_id(tokenizer.token(id)), id);
  EXPECT_EQ(tokenizer.token(256), "<s>");
  EXPECT_EQ(tokenizer.token_id("</s>"), 257);
  EXPECT_EQ(tokenizer.token(258), "");
  EXPECT_EQ(tokenizer.token(-1), "");
}

TEST(bytes_tokenizer, decodes_and_drops_special_tokens) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  const Ids ids = {256, 0xC3, 0xA9, 65, 257};
  EXPECT_EQ(tokenizer.decode(ids), "éA");
  EXPECT_EQ(tokenizer.decode(ids, false), "<s>éA</s>");
  EXPECT_EQ(tokenizer.decode(Ids{0xC3, 65, 0xF0, 0x9F, 0x8E}), "\uFFFDA\uFFFD");
  EXPECT_EQ(tokenizer.decode(Ids{65, 300, -5, 66}), "AB");
}

TEST(bytes_tokenizer, loads_from_the_file_it_writes) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "headroom_bytes_tokenizer";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json", std::ios::binary) << bytes_tokenizer_json();
  for (const auto& path : {folder, folder / "tokenizer.json"}) {
    const Tokenizer tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer.encode("ab", true), (Ids{256, 97, 98}));
    EXPECT_EQ(tokenizer.eos_id(), 257);
  }
  std::filesystem::remove_all(folder);
}

TEST(bytes_tokenizer, refuses_what_is_not_utf8_naming_the_byte) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  const auto refusal = [&](std::string_view text) -> std::string {
    try {
      tokenizer.encode(text, true);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::format);
      EXPECT_FALSE(error.remedy().empty());
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal("ab\xFFz"), "the text is not UTF-8: byte 2 is 0xff");
  EXPECT_EQ(refusal("é\xC3"), "the text is not UTF-8: byte 2 is 0xc3");
  EXPECT_EQ(refusal("\xED\xA0\x80"), "the text is not UTF-8: byte 0 is 0xed");  // a surrogate
  EXPECT_EQ(refusal("x\xC0\x80"), "the text is not UTF-8: byte 1 is 0xc0");     // overlong
  EXPECT_EQ(refusal("\xF4\x90\x80\x80"), "the text is not UTF-8: byte 0 is 0xf4");
}

}  // namespace
}  // namespace headroom
