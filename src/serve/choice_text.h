// One choice of an answer: turns its tokens into text, up to a stop.
#pragma once

#include <string>
#include <vector>

#include "generate/scheduler.h"
#include "generate/stop_texts.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// A token's part of the text, and its alternatives.
struct TokenText {
  int32_t id = 0;
  std::string text;  // the texts of a choice's tokens make up its text, except for a stop and what follows
  std::optional<float> logprob;
  std::vector<std::pair<std::string, float>> best;  // by falling probability
};

class ChoiceText {
 public:
  // `prompt`: the tokens before the choice. The choice's text is what it adds to the prompt's text.
  ChoiceText(const Tokenizer& tokenizer, std::span<const int32_t> prompt, const std::vector<std::string>& stops,
             bool keeps_special);

  // Returns the text that is certain with this token, without a stop and without a possible start of one. Fills in the
  // token's own part.
  std::string add(const SequenceToken& token, TokenText& described);
  // The rest, at the end of the tokens.
  std::string finish();
  bool stopped() const { return stops_.stopped(); }
  // The stop that ended the text; empty: none.
  std::string stop() const { return stops_.stopped() ? *stops_.stopped_by() : std::string(); }

 private:
  std::string fresh(std::string piece);
  std::string text_of(int32_t id) const;

  const Tokenizer* tokenizer_;
  bool keeps_special_;
  StreamDecoder decoder_;
  StopTexts stops_;
  std::string held_;  // the prompt's text that the decoder has not emitted yet
  int32_t before_ = -1;
};

// The tokens of a prompt, each with its part of the text.
std::vector<TokenText> describe_prompt(const Tokenizer& tokenizer, const std::vector<SequenceToken>& tokens);

}  // namespace headroom
