// The bytes that each token adds to a text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tokenizer/tokenizer.h"

namespace headroom {

class DecoderPlan;

// For tokenizers whose decoders map tokens one by one: byte-level ones, and those that spell a space as another
// character and bytes as <0xNN>.
class TokenBytes {
 public:
  // Throws Error(usage) if a token's text depends on the tokens around it.
  explicit TokenBytes(const Tokenizer& tokenizer);

  // The bytes that the token adds after others; empty for special tokens and for ids without a token. If the whole text
  // is valid UTF-8, these are the bytes of Tokenizer::decode().
  std::string of(int32_t id) const;

  // How many spaces are removed at the beginning of the text, and whether only from its first token.
  int32_t leading_spaces() const { return leading_spaces_; }
  bool only_of_first_token() const { return only_of_first_token_; }

  int64_t vocab_size() const;

 private:
  std::shared_ptr<const TokenizerPipeline> pipeline_;
  int32_t leading_spaces_ = 0;
  bool only_of_first_token_ = false;
};

}  // namespace headroom
