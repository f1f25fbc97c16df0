// Malformed and unsupported tokenizer.json files: each gives Error(format) with the file and the position.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "formats/json.h"
#include "tokenizer/tokenizer.h"

namespace headroom {
namespace {

std::string refusal(const std::string& text) {
  try {
    Tokenizer::from_json(text, "bad.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format) << error.what();
    EXPECT_FALSE(error.remedy().empty()) << error.what();
    EXPECT_EQ(std::string(error.what()).rfind("bad.json", 0), 0U) << error.what();
    return error.what();
  }
  return "no error";
}

// A tokenizer.json with this model and further members.
std::string with(const std::string& model, const std::string& more = "") { return "{\"model\":" + model + more + "}"; }
std::string with_vocab(const std::string& vocab, const std::string& merges = "[]") {
  return with(R"({"type":"BPE","vocab":)" + vocab + R"(,"merges":)" + merges + "}");
}
std::string with_part(const std::string& part) {
  return with(R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]})", "," + part);
}

#define EXPECT_REFUSAL(text, part) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text)

TEST(malformed, text_that_is_no_json) {
  EXPECT_REFUSAL("", "malformed JSON at byte");
  EXPECT_REFUSAL("{", "malformed JSON at byte");
  EXPECT_REFUSAL(R"({"model":{"type":"BPE","vocab":{"a":0)", "malformed JSON at byte");
  EXPECT_REFUSAL("{\"model\":\"\xFF\"}", "malformed JSON at byte 11");
  EXPECT_REFUSAL("[]", "the top level is not an object");
  EXPECT_REFUSAL("7", "the top level is not an object");
  EXPECT_REFUSAL("{}", "no object \"model\"");
  const std::string whole = bytes_tokenizer_json();
  for (size_t cut = 0; cut + 2 < whole.size(); cut += 97) EXPECT_NE(refusal(whole.substr(0, cut)), "no error") << cut;
}

TEST(malformed, deep_nesting) {
  EXPECT_REFUSAL(std::string(100'000, '['), "nested deeper than 64 levels");
  std::string deep = R"({"type":"NFC"})";
  for (int i = 0; i < 20; ++i) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  EXPECT_REFUSAL(with_part("\"normalizer\":" + deep), "has too many steps");
}

TEST(malformed, models) {
  EXPECT_REFUSAL(with("[]"), "no object \"model\"");
  EXPECT_REFUSAL(with(R"({"type":"WordLevel","vocab":{}})"), "model.type \"WordLevel\" is not supported");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":[["a",-1.5]],"merges":[]})"), "there is no object model.vocab");
  EXPECT_REFUSAL(with(R"({"type":3,"vocab":{},"merges":[]})"), "model.type is not a string");
  EXPECT_REFUSAL(with(R"({"type":"BPE"})"), "no object model.vocab");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":{"a":0}})"), "no list model.merges");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":7,"merges":[]})"), "model.vocab is 7");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":{},"vocab":{},"merges":[]})"), "model.vocab appears twice");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1})"), "dropout");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"x"})"),
                 "model.unk_token: is not in model.vocab");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"</w>"})"),
                 "end_of_word_suffix is not supported");
  EXPECT_REFUSAL(with(R"({"type":"BPE","vocab":{"a":0},"merges":[],"fuse_unk":1})"),
                 "model.fuse_unk: is neither true nor false");
}

TEST(malformed, word_piece) {
  const auto with_options = [](const std::string& options) {
    return with(R"({"type":"WordPiece","vocab":{"[UNK]":0,"a":1})" + options + "}");
  };
  EXPECT_EQ(refusal(with_options("")), "no error");
  EXPECT_REFUSAL(with(R"({"type":"WordPiece","vocab":[]})"), "there is no object model.vocab");
  EXPECT_REFUSAL(with(R"({"type":"WordPiece"})"), "there is no object model.vocab");
  EXPECT_REFUSAL(with(R"({"type":"WordPiece","vocab":{}})"), "model: unk_token \"[UNK]\" is not in model.vocab");
  EXPECT_REFUSAL(with_options(R"(,"unk_token":7)"), "model.unk_token: is not a string");
  EXPECT_REFUSAL(with_options(R"(,"max_input_chars_per_word":-1)"), "model.max_input_chars_per_word: is not a number");
  EXPECT_REFUSAL(with_options(R"(,"continuing_subword_prefix":[])"),
                 "model.continuing_subword_prefix: is not a string");
  EXPECT_REFUSAL(with(R"({"type":"WordPiece","vocab":{"[UNK]":0,")" + std::string(5000, 'a') + R"(":1}})"),
                 "the token of id 1 has 5000 bytes");
}

TEST(malformed, unigram) {
  const auto with_pieces = [](const std::string& vocab, const std::string& options = "") {
    return with(R"({"type":"Unigram","unk_id":0,"vocab":)" + vocab + options + "}");
  };
  EXPECT_EQ(refusal(with_pieces(R"([["<unk>",0],["a",-1.5]])")), "no error");
  EXPECT_EQ(refusal(with(R"({"vocab":[["<unk>",0]],"unk_id":0})")), "no error");
  EXPECT_REFUSAL(with(R"({"type":"Unigram","vocab":{"a":0}})"), "there is no list model.vocab");
  EXPECT_REFUSAL(with(R"({"type":"Unigram"})"), "there is no list model.vocab");
  EXPECT_REFUSAL(with(R"({"vocab":[],"vocab":[],"type":"Unigram"})"), "model.vocab appears twice");
  EXPECT_REFUSAL(with_pieces("[]"), "model.unk_id: 0 where model.vocab has 0 tokens");
  EXPECT_REFUSAL(with(R"({"type":"Unigram","unk_id":2,"vocab":[["a",0]]})"), "model.unk_id: 2 where");
  EXPECT_REFUSAL(with(R"({"type":"Unigram","unk_id":-1,"vocab":[["a",0]]})"), "model.unk_id: is not a number");
  EXPECT_REFUSAL(with_pieces(R"([["a"]])"), "model.vocab[0]: [] where a pair of token and score is expected");
  EXPECT_REFUSAL(with_pieces(R"([["b",0],[]])"), "model.vocab[1]: []");
  EXPECT_REFUSAL(with_pieces(R"([["a",0,0]])"), "model.vocab[1]: 0.0 where");
  EXPECT_REFUSAL(with_pieces(R"([["a","b"]])"), "model.vocab[0]: \"b\" where");
  EXPECT_REFUSAL(with_pieces(R"([[1,"b"]])"), "model.vocab[0]: 1.0 where");
  EXPECT_REFUSAL(with_pieces(R"([["a",null]])"), "model.vocab[0]: null where");
  EXPECT_REFUSAL(with_pieces(R"([["a",[0]]])"), "model.vocab[0]: [] where");
  EXPECT_REFUSAL(with_pieces(R"([["a",{}]])"), "model.vocab[0]: {} where");
  EXPECT_REFUSAL(with_pieces(R"(["a"])"), "model.vocab[0]: \"a\" where");
  EXPECT_REFUSAL(with_pieces("[7]"), "model.vocab[0]: 7.0 where");
  EXPECT_REFUSAL(with_pieces(R"([["a",1e999]])"), "malformed JSON at byte");
  EXPECT_REFUSAL(with_pieces(R"([["a",0],[")" + std::string(5000, 'a') + R"(",1]])"), "the token of id 1 has 5000");
  EXPECT_REFUSAL(with_pieces(R"([["a",0]])", R"(,"byte_fallback":3)"), "model.byte_fallback: is neither true nor");
}

TEST(malformed, tables_of_replacements) {
  const auto with_table = [](const std::string& table) {
    return with_part(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":)" + table + "}");
  };
  // A trie of this many units, of which the first ones are given, followed by texts.
  const auto table = [](std::vector<uint32_t> units, size_t count, const std::string& texts) {
    units.insert(units.begin(), static_cast<uint32_t>(4 * count));
    units.resize(count + 1);
    std::string bytes;
    for (const uint32_t unit : units)
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(unit >> shift & 0xFF));
    bytes += texts;
    while (bytes.size() % 3 != 0) bytes.push_back('\0');
    std::string text = "\"";
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < bytes.size(); at += 3) {
      uint32_t bits = 0;
      for (size_t i = 0; i < 3; ++i) bits = bits << 8 | static_cast<unsigned char>(bytes[at + i]);
      for (int shift = 18; shift >= 0; shift -= 6) text.push_back(digits[bits >> shift & 63]);
    }
    return text + "\"";
  };
  // 'a' at 1 ^ 'a' = 96, its leaf at 2.
  std::vector<uint32_t> units(97);
  units[0] = 1U << 10;
  units[96] = 'a' | 1U << 8 | (96U ^ 2U) << 10;
  EXPECT_EQ(refusal(with_table(table(units, 256, "bcd"))), "no error");
  EXPECT_REFUSAL(with_table("null"), "precompiled_charsmap: is not a string");
  EXPECT_REFUSAL(with_table("7"), "normalizer.precompiled_charsmap: is not a string");
  EXPECT_REFUSAL(with_table("\"?\""), "precompiled_charsmap: is not base64");
  EXPECT_REFUSAL(with_table("\"\""), "has 0 bytes, too few for a table");
  EXPECT_REFUSAL(with_table("\"AAAAAA==\""), "states a trie of 0 bytes, of 0");
  EXPECT_REFUSAL(with_table("\"/////w==\""), "states a trie of 4294967295 bytes, of 0");
  EXPECT_REFUSAL(with_table(table(units, 97, "")), "unit 0 leads out of the trie");
  units[2] = 400;
  EXPECT_REFUSAL(with_table(table(units, 256, "ab")), "unit 2 leads out of the texts");
  units[2] = 0;
  EXPECT_REFUSAL(with_table(table(units, 256, "\xFF")), "the text at 0 is not UTF-8");
  EXPECT_REFUSAL(with_table(table(units, 256, std::string(5000, 'x'))), "thousands of times longer");
  units[96] |= 1U << 30;
  EXPECT_REFUSAL(with_table(table(units, 256, "")), "unit 96 leads out of the trie");
  units[0] = 0xFFFFFFFF;
  EXPECT_REFUSAL(with_table(table(units, 256, "")), "unit 0 leads out of the trie");
}

TEST(malformed, vocabularies) {
  EXPECT_REFUSAL(with_vocab(R"({"a":-1})"), "token \"a\" has the id -1");
  EXPECT_REFUSAL(with_vocab(R"({"a":1.5})"), "token \"a\" has the id 1.5");
  EXPECT_REFUSAL(with_vocab(R"({"a":"0"})"), "token \"a\" has the id \"0\"");
  EXPECT_REFUSAL(with_vocab(R"({"a":[0]})"), "token \"a\" has the id []");
  EXPECT_REFUSAL(with_vocab(R"({"a":16777216})"), "token \"a\" has the id 16777216");
  EXPECT_REFUSAL(with_vocab(R"({"a":99999999999999999999999})"), "token \"a\" has the id 9.99");
  EXPECT_REFUSAL(with_vocab(R"({"a":16777215})"), "highest id 16777215 with only 1 tokens");
  EXPECT_REFUSAL(with_vocab(R"({"a":0,"b":0})"), "tokens \"a\" and \"b\" share id 0");
  EXPECT_REFUSAL(with_vocab(R"({"a":0,"a":1})"), "token \"a\" has two ids, 0 and 1");
}

TEST(malformed, merges) {
  const std::string vocab = R"({"a":0,"b":1,"ab":2})";
  EXPECT_REFUSAL(with_vocab(vocab, R"(["a c"])"), "model.merges[0] (\"a\", \"c\"): \"ac\" is not in model.vocab");
  EXPECT_REFUSAL(with_vocab(vocab, R"([["a","b"],["b","a"]])"),
                 "model.merges[1] (\"b\", \"a\"): \"ba\" is not in model.vocab");
  EXPECT_REFUSAL(with_vocab(vocab, R"(["ab"])"), "model.merges[0]: \"ab\" is not two tokens");
  EXPECT_REFUSAL(with_vocab(vocab, R"(["a b c"])"), "is not two tokens");
  EXPECT_REFUSAL(with_vocab(vocab, R"([["a"]])"), "model.merges[0] has 1 tokens");
  EXPECT_REFUSAL(with_vocab(vocab, R"([["a","b","c"]])"), "has more than two tokens");
  EXPECT_REFUSAL(with_vocab(vocab, "[7]"), "model.merges[0] is 7");
  EXPECT_REFUSAL(with_vocab(vocab, "[[[]]]"), "has a list within");
  EXPECT_REFUSAL(with_vocab(vocab, "{}"), "model.merges is an object");
  EXPECT_REFUSAL(with(R"({"merges":["a c"],"vocab":{"a":0,"c":1}})"), "\"ac\" is not in model.vocab");
}

TEST(malformed, added_tokens) {
  EXPECT_REFUSAL(with_part(R"("added_tokens":{})"), "added_tokens: is not a list");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[7])"), "added_tokens[0]: is not an object");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"id":3}])"), "added_tokens[0]: \"content\" is missing");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x"}])"), "added_tokens[0]: \"id\" is missing");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x","id":-3}])"), "added_tokens[0].id: is not a number");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x","id":2000000000}])"), "id 2000000000 is above");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x","id":1}])"), "id 1 belongs to \"b\"");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x","id":3},{"content":"y","id":3}])"),
                 "\"x\" and \"y\" share id 3");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x","id":3},{"content":"x","id":4}])"), "\"x\" has two ids");
  EXPECT_REFUSAL(with_part(R"("added_tokens":[{"content":"x","id":3,"lstrip":"yes"}])"),
                 "lstrip: is neither true nor false");
}

TEST(malformed, components) {
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"ByteLevel"})"), "normalizer: type \"ByteLevel\" is not supported");
  EXPECT_REFUSAL(with_part(R"("normalizer":"NFC")"), "normalizer: is not an object");
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"Replace","pattern":{"Regex":"a*"},"content":"b"})"),
                 "can match the empty text");
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"Replace","pattern":{"String":""},"content":"b"})"),
                 "pattern: is empty");
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"Prepend"})"), "normalizer: \"prepend\" is missing");
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Odd"}]})"),
                 "normalizer.normalizers[1]: type \"Odd\"");
  EXPECT_REFUSAL(with_part(R"("pre_tokenizer":{"type":"UnicodeScripts"})"), "pre_tokenizer: type \"UnicodeScripts\"");
  EXPECT_REFUSAL(with_part(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})"),
                 "a group without its closing )");
  EXPECT_REFUSAL(with_part(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"})"),
                 "behavior: is not one of");
  EXPECT_REFUSAL(with_part(R"("pre_tokenizer":{"type":"Metaspace","replacement":"__"})"),
                 "replacement: is not one character");
  EXPECT_REFUSAL(with_part(R"("post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}})"),
                 "has no place for the text");
  EXPECT_REFUSAL(
      with_part(
          R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}}],"special_tokens":{}})"),
      "special_tokens: \"s\" is missing");
  EXPECT_REFUSAL(with_part(R"("post_processor":{"type":"BertProcessing","cls":["a",9],"sep":["b",1]})"),
                 "no token has the id 9");
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"Strip","strip_left":1})"), "strip_left: is neither true nor false");
  EXPECT_REFUSAL(with_part(R"("normalizer":{"type":"BertNormalizer","lowercase":"no"})"), "lowercase: is neither");
  EXPECT_REFUSAL(with_part(R"("pre_tokenizer":{"type":"CharDelimiterSplit","delimiter":""})"), "is not one character");
  EXPECT_REFUSAL(with_part(R"("decoder":{"type":"WordPiece","prefix":1})"), "decoder.prefix: is not a string");
  EXPECT_REFUSAL(with_part(R"("decoder":{"type":"CTC"})"), "decoder: type \"CTC\" is not supported");
  EXPECT_REFUSAL(with_part(R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"),
                 "decoder.start: is not a number");
}

TEST(malformed, missing_and_unreadable_files) {
  try {
    Tokenizer::load("/nonexistent/folder");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("/nonexistent/folder"), std::string::npos);
  }
}

TEST(special_tokens, come_from_the_files_beside) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "headroom_special_tokens";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << bytes_tokenizer_json();
  const auto config = [&](const char* name, const char* text) { std::ofstream(folder / name) << text; };
  config("tokenizer_config.json", R"({"bos_token":null,"eos_token":{"content":"a","lstrip":false}})");
  EXPECT_EQ(Tokenizer::load(folder).eos_id(), 97);
  EXPECT_EQ(Tokenizer::load(folder).bos_id(), 256);  // added by the post-processor
  config("tokenizer_config.json", R"({"bos_token":"b"})");
  config("special_tokens_map.json", R"({"eos_token":"c"})");
  EXPECT_EQ(Tokenizer::load(folder).bos_id(), 98);
  EXPECT_FALSE(Tokenizer::load(folder).adds_bos());
  EXPECT_EQ(Tokenizer::load(folder).eos_id(), 99);
  config("tokenizer_config.json", R"({"bos_token":7})");
  EXPECT_THROW(Tokenizer::load(folder), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headroom
