// The decoder of a tokenizer.json: tokens -> text. ByteLevel, ByteFallback, Replace, Fuse, Strip, Metaspace,
// WordPiece, Sequence.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/component.h"
#include "tokenizer/pattern.h"

namespace headroom {

// One step of a decoder, with its state for the text being decoded. Tokens come in one by one; what has become certain
// goes out. After Fuse and ByteLevel the text is a single token, which comes in pieces.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  // Takes the next token, or the next piece of the only token, and passes what is certain to `out`.
  virtual void take(std::string_view token, class DecoderOutput& out) = 0;
  // Ends the text: passes the rest. The stage is then ready for another text.
  virtual void finish(DecoderOutput& out) = 0;
};

// Receives the tokens of a stage.
class DecoderOutput {
 public:
  virtual void token(std::string_view text) = 0;

 protected:
  ~DecoderOutput() = default;
};

// What a tokenizer.json says about its decoder; it makes the stages for each text.
class DecoderPlan {
 public:
  // Without a decoder, tokens are joined with spaces.
  DecoderPlan() = default;
  // Throws Error(format) naming the place.
  static DecoderPlan read(const Component& component);

  std::vector<std::unique_ptr<DecoderStage>> make_stages() const;
  int64_t memory_bytes() const;

  // Spaces that are removed at the beginning of a text.
  struct LeadingSpaces {
    int32_t count = 0;
    bool only_of_first_token = false;
  };
  // Empty if a token's text depends on the tokens around it in any other way than by these spaces.
  std::optional<LeadingSpaces> leading_spaces() const;
  // The bytes of a token that is not the first. Only if leading_spaces() has a value.
  std::string bytes_of(std::string_view token) const;

 private:
  enum class Kind { byte_level, byte_fallback, replace, fuse, strip, metaspace, word_piece };
  struct Step {
    Kind kind;
    std::shared_ptr<const Pattern> pattern;  // replace by pattern
    std::string replaced;                    // replace
    std::string content;                     // replace: the replacement; strip: the character; word_piece: the prefix
    int32_t start = 0;                       // strip: at most this many at the beginning
    int32_t stop = 0;
    char32_t character = 0;    // metaspace
    bool drops_first = false;  // metaspace: the first token loses its replacements
    bool cleans_up = false;    // word_piece
  };
  void add(const Component& component, int depth);
  static std::unique_ptr<DecoderStage> make_stage(const Step& step, bool pieces);

  bool has_decoder_ = false;
  std::vector<Step> steps_;
};

// The stages of one text, linked.
class DecoderChain {
 public:
  explicit DecoderChain(const DecoderPlan& plan) : stages_(plan.make_stages()) {}
  // Appends to `out` what is certain after another token.
  void take(std::string_view token, std::string& out);
  // Appends the rest; the chain is then ready for another text.
  void finish(std::string& out);

 private:
  std::vector<std::unique_ptr<DecoderStage>> stages_;
};

}  // namespace headroom
