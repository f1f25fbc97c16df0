// The bytes that each token adds to a text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tokenizer/tokenizer.h"

namespace headroom {

class DecoderPlan;

// Of tokenizers whose decoders take the tokens one by one: byte-level ones, and those that spell a space as another
// character and bytes as <0xNN>.
class TokenBytes {
 public:
  // Throws Error(usage) where a token's text depends on those around it.
  explicit TokenBytes(const Tokenizer& tokenizer);

  // What the token adds behind others; empty for special tokens and ids that have none. In a text that is valid UTF-8
  // as a whole these are the bytes of Tokenizer::decode().
  std::string of(int32_t id) const;

  // How many spaces at the beginning of the text are left out, and whether of its first token only.
  int32_t leading_spaces() const { return leading_spaces_; }
  bool only_of_first_token() const { return only_of_first_token_; }

  int64_t vocab_size() const;

 private:
  std::shared_ptr<const TokenizerPipeline> pipeline_;
  int32_t leading_spaces_ = 0;
  bool only_of_first_token_ = false;
};

}  // namespace headroom
