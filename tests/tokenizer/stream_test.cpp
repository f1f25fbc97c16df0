#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "../data_files/data_files.h"
#include "base/error.h"
#include "formats/file.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/utf8.h"
#include "tokenizer_vectors.h"

namespace headroom {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer golden_tokenizer(const std::string& name) {
  for (const Json& entry : golden_tokenizers())
    if (entry.at("name") == name) return Tokenizer::from_json(entry.at("tokenizer").dump(), name);
  throw std::runtime_error("no such golden tokenizer");
}

std::string random_text(std::mt19937& random, size_t pieces) {
  static const std::vector<std::string> kPieces = {
      "a",     "the", " ",      "  ",      "\n",     "\r\n",   "\t", "'s", "'ll",     "'",   "1",      "12",
      "!",     "...", "é",      "e\u0301", "\u0301", "中",     "한", "ᄒ", "ᅡ",      "<s>", "<mask>", "<both>",
      "étude", "▁",   "\u00a0", "🎉",       "<0x0A>", "\u3099", "か", "<",  "\u0000x", "½",   "_",      "\u2028"};
  std::string text;
  for (size_t i = 0; i < pieces; ++i) text += kPieces[random() % kPieces.size()];
  return text;
}

// Cutting where the tokenizer allows it must never change the ids.
TEST(stream_encoder, cuts_that_are_called_safe_are_safe) {
  std::mt19937 random(7);
  for (const Json& entry : golden_tokenizers()) {
    const auto name = entry.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = Tokenizer::from_json(entry.at("tokenizer").dump(), name);
    const TokenizerPipeline& pipeline = tokenizer.pipeline();
    TokenizerWorkspace workspace;
    int cuts = 0;
    for (int round = 0; round < 1000; ++round) {
      const std::string text = random_text(random, 1 + random() % 12);
      const Ids whole = tokenizer.encode(text, false);
      for (size_t at = decode_utf8(text, 0).bytes; at < text.size(); at += decode_utf8(text, at).bytes) {
        const char32_t left = decode_utf8(text, previous_utf8(text, at)).code;
        if (!pipeline.allows_cut(left, decode_utf8(text, at).code)) continue;
        ++cuts;
        Ids parts;
        const TextPlace next = pipeline.encode(std::string_view(text).substr(0, at), TextPlace{}, workspace, parts);
        pipeline.encode(std::string_view(text).substr(at), next, workspace, parts);
        ASSERT_EQ(parts, whole) << "cut " << text << " at " << at;
      }
    }
    EXPECT_GT(cuts, 100);
  }
}

TEST(stream_encoder, real_texts_are_cut_safely) {
  for (const std::filesystem::path& folder : real_tokenizers()) {
    const Tokenizer tokenizer = Tokenizer::load(folder);
    for (const char* file : {"tinyshakespeare.txt", "wagahaiwa_nekodearu.txt"}) {
      const std::string text = read_text_file(test::data_file("text") / file);
      ASSERT_GT(text.size(), 190'000U);
      int64_t forced_cuts = 0;
      EXPECT_EQ(encode_in_chunks(tokenizer, text, 777, 4096, forced_cuts), tokenizer.encode(text, true))
          << folder << ' ' << file;
      EXPECT_EQ(forced_cuts, 0) << folder << ' ' << file;
    }
  }
}

TEST(stream_encoder, cuts_by_force_where_there_is_no_safe_place_and_says_so) {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  int64_t forced_cuts = 0;
  const std::string text = std::string(1000, 'e') + " end";
  encode_in_chunks(tokenizer, text, 100, 256, forced_cuts);
  EXPECT_EQ(forced_cuts, 3);
  EXPECT_EQ(encode_in_chunks(tokenizer, text, 100, 2048, forced_cuts), tokenizer.encode(text, true));
  EXPECT_EQ(forced_cuts, 0);
}

TEST(stream_encoder, names_the_byte_that_is_not_utf8) {
  StreamEncoder encoder(Tokenizer::bytes(), true);
  Ids ids;
  encoder.feed(std::string(100'000, 'x') + "\xC3", ids);
  EXPECT_THROW(
      try { encoder.feed("(", ids); } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "the text is not UTF-8: byte 100000 is 0xc3");
        throw;
      },
      Error);
  StreamEncoder cut_short(Tokenizer::bytes(), true);
  cut_short.feed("ab\xF0\x9F", ids);
  EXPECT_THROW(cut_short.finish(ids), Error);
}

TEST(stream_encoder, begins_again_after_finish) {
  const Tokenizer tokenizer = golden_tokenizer("llama2");
  StreamEncoder encoder(tokenizer, true);
  for (int i = 0; i < 2; ++i) {
    Ids ids;
    encoder.feed("the end", ids);
    encoder.finish(ids);
    EXPECT_EQ(ids, tokenizer.encode("the end", true));
  }
  Ids empty;
  encoder.finish(empty);
  EXPECT_EQ(empty, tokenizer.encode("", true));
}

TEST(stream_encoder, states_a_bound_of_its_memory) {
  const Tokenizer tokenizer = Tokenizer::bytes();
  EXPECT_LT(StreamEncoder::memory_bound(tokenizer, 1 << 16), 4 << 20);
  EXPECT_GT(StreamEncoder::memory_bound(tokenizer, 1 << 20), StreamEncoder::memory_bound(tokenizer, 1 << 16));
}

TEST(encode, one_word_of_a_megabyte) {
  // Quadratic time would take hours.
  for (const char* name : {"gpt2", "llama2"}) {
    const Tokenizer tokenizer = golden_tokenizer(name);
    for (const char* unit : {"e", "the", " ", "é"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      const Ids ids = tokenizer.encode(text, false);
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
  }
}

TEST(encode, does_not_depend_on_what_was_encoded_before) {
  const Tokenizer tokenizer = golden_tokenizer("gpt2");
  std::mt19937 random(3);
  std::vector<std::pair<std::string, Ids>> first;
  for (int i = 0; i < 50; ++i) {
    const std::string text = random_text(random, 20);
    first.emplace_back(text, golden_tokenizer("gpt2").encode(text, false));
  }
  for (const auto& [text, ids] : first) EXPECT_EQ(tokenizer.encode(text, false), ids);
  for (const auto& [text, ids] : first) EXPECT_EQ(tokenizer.encode(text, false), ids);
}

// For any ids, whether they make valid text or not.
TEST(stream_decoder, pieces_are_valid_and_make_up_the_whole) {
  std::mt19937 random(11);
  for (const Json& entry : golden_tokenizers()) {
    const auto name = entry.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = Tokenizer::from_json(entry.at("tokenizer").dump(), name);
    for (int round = 0; round < 100; ++round) {
      Ids ids(random() % 30);
      for (int32_t& id : ids)
        id = static_cast<int32_t>(random() % static_cast<uint32_t>(tokenizer.vocab_size() + 3)) - 1;
      StreamDecoder decoder(tokenizer, round % 2 == 0);
      std::string pieces;
      for (const int32_t id : ids) {
        const std::string piece = decoder.push(id);
        EXPECT_EQ(check_utf8(piece).valid, piece.size());
        pieces += piece;
      }
      EXPECT_EQ(pieces + decoder.finish(), tokenizer.decode(ids, round % 2 == 0));
    }
  }
}

TEST(stream_decoder, gives_text_as_soon_as_it_is_certain) {
  StreamDecoder decoder(Tokenizer::bytes());
  EXPECT_EQ(decoder.push(256), "");
  EXPECT_EQ(decoder.push('A'), "A");
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.push(0xA9), "é");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push('B'), "\uFFFDB");
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
}

}  // namespace
}  // namespace headroom
