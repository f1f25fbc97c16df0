// The stages of decoders.
#pragma once

#include <functional>

#include "tokenizer/decoder.h"

namespace headroom {

// Without a decoder: a space between tokens.
class JoinStage final : public DecoderStage {
 public:
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput& out) override { first_ = true; }

 private:
  bool first_ = true;
};

// Byte symbols -> text; invalid UTF-8 becomes U+FFFD, one for each longest part that could begin a character.
class ByteLevelStage final : public DecoderStage {
 public:
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput& out) override;

 private:
  void give_valid(DecoderOutput& out, bool ends);
  std::string held_;
};

// Runs of tokens <0xNN> -> the text of their bytes, or U+FFFD for each of them if it is not UTF-8.
class ByteFallbackStage final : public DecoderStage {
 public:
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput& out) override;

 private:
  std::string bytes_;
};

// Maps each token separately.
class MapStage final : public DecoderStage {
 public:
  using Map = std::function<std::string(std::string_view token, bool first)>;
  explicit MapStage(Map map) : map_(std::move(map)) {}
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput&) override { first_ = true; }

 private:
  Map map_;
  bool first_ = true;
};

// Removes up to `start` characters at the beginning and `stop` at the end of a token that comes in pieces.
class StripPiecesStage final : public DecoderStage {
 public:
  StripPiecesStage(std::string character, int32_t start, int32_t stop)
      : character_(std::move(character)), start_(start), stop_(stop), left_(start) {}
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput& out) override;

 private:
  std::string character_;
  int32_t start_;
  int32_t stop_;
  int32_t left_;      // how many more may be removed at the beginning
  std::string held_;  // what may still be removed at the end
};

// Collects the pieces of a token and passes the whole token to another stage at the end.
class WholeStage final : public DecoderStage {
 public:
  explicit WholeStage(std::unique_ptr<DecoderStage> inner) : inner_(std::move(inner)) {}
  void take(std::string_view token, DecoderOutput&) override { held_ += token; }
  void finish(DecoderOutput& out) override;

 private:
  std::unique_ptr<DecoderStage> inner_;
  std::string held_;
};

// A token of WordPiece: without the prefix if it continues a word, else after a space unless it is the first. With
// `cleans_up`, English punctuation and contractions lose the space before them.
std::string join_word_piece(std::string_view token, std::string_view prefix, bool first, bool cleans_up);

// The byte of a token <0xNN>, -1 for other tokens.
int fallback_byte(std::string_view token);

// The bytes that a token's byte symbols stand for; the token itself if it has any other character.
std::string bytes_of_token(std::string_view token);

// A whole token with up to `start` and `stop` occurrences of the character removed at its two ends.
std::string strip_token(std::string_view token, std::string_view character, int32_t start, int32_t stop);

}  // namespace headroom
