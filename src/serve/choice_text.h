// One choice of an answer: its tokens become text, up to a stop.
#pragma once

#include <string>
#include <vector>

#include "generate/scheduler.h"
#include "generate/stop_texts.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace headroom {

// A token's part of the text, and what could have stood there.
struct TokenText {
  int32_t id = 0;
  std::string text;  // the texts of a choice's tokens join to its text, a stop and what follows it aside
  std::optional<float> logprob;
  std::vector<std::pair<std::string, float>> best;  // falling
};

class ChoiceText {
 public:
  // `prompt`: what the tokens go on from: their text is what they add to its text.
  ChoiceText(const Tokenizer& tokenizer, std::span<const int32_t> prompt, const std::vector<std::string>& stops,
             bool keeps_special);

  // The text that has become certain with the token; what stops the text, and what may yet be the beginning of that, is
  // not in it. Fills in the token's own part.
  std::string add(const SequenceToken& token, TokenText& described);
  // The rest, once there are no more tokens.
  std::string finish();
  bool stopped() const { return stops_.stopped(); }
  // The stop that ended it; empty: none did.
  std::string stop() const { return stops_.stopped() ? *stops_.stopped_by() : std::string(); }

 private:
  std::string fresh(std::string piece);
  std::string text_of(int32_t id) const;

  const Tokenizer* tokenizer_;
  bool keeps_special_;
  StreamDecoder decoder_;
  StopTexts stops_;
  std::string held_;  // what the decoder has yet to give of the prompt's text
  int32_t before_ = -1;
};

// The tokens of a prompt, each with its part of the text.
std::vector<TokenText> describe_prompt(const Tokenizer& tokenizer, const std::vector<SequenceToken>& tokens);

}  // namespace headroom
