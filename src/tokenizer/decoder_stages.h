// The stages that decoders are made of.
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

// Byte symbols -> text; bytes that are not UTF-8 become U+FFFD, one for each longest part that could have begun a
// character.
class ByteLevelStage final : public DecoderStage {
 public:
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput& out) override;

 private:
  void give_valid(DecoderOutput& out, bool ends);
  std::string held_;
};

// Runs of tokens <0xNN> -> the text that their bytes are, or U+FFFD for each of them.
class ByteFallbackStage final : public DecoderStage {
 public:
  void take(std::string_view token, DecoderOutput& out) override;
  void finish(DecoderOutput& out) override;

 private:
  std::string bytes_;
};

// Changes every token by itself.
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
  int32_t left_;      // characters that may still be removed at the beginning
  std::string held_;  // what may be removed at the end
};

// Gives a token that comes in pieces to another stage as a whole, at the end.
class WholeStage final : public DecoderStage {
 public:
  explicit WholeStage(std::unique_ptr<DecoderStage> inner) : inner_(std::move(inner)) {}
  void take(std::string_view token, DecoderOutput&) override { held_ += token; }
  void finish(DecoderOutput& out) override;

 private:
  std::unique_ptr<DecoderStage> inner_;
  std::string held_;
};

// A token of WordPiece: what goes on a word without the prefix, others after a space unless they are the first. With
// `cleans_up`, English punctuation and contractions lose the space before them.
std::string join_word_piece(std::string_view token, std::string_view prefix, bool first, bool cleans_up);

// The byte that <0xNN> names, -1 for other tokens.
int fallback_byte(std::string_view token);

// The bytes of a token in byte symbols; the token itself when one of its characters is none.
std::string bytes_of_token(std::string_view token);

// A whole token without up to `start` and `stop` of the character at its ends.
std::string strip_token(std::string_view token, std::string_view character, int32_t start, int32_t stop);

}  // namespace headroom
