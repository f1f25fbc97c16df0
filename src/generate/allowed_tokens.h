// Drawing among the tokens that a grammar allows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/sampler.h"
#include "grammar/grammar_matcher.h"

namespace headroom {

// Writes `logits` to `kept`, which may be the same: -inf where the grammar does not allow the token. Returns the
// likeliest allowed one. Throws Error(run) where none is.
int32_t keep_allowed(GrammarMatcher& grammar, std::span<const float> logits, std::span<float> kept);

class AllowedTokens {
 public:
  // Without a grammar (null) every token is allowed, and the sampler's own pick is taken.
  AllowedTokens(GrammarMatcher* grammar, int64_t vocab);

  // As sampler.pick(), where the tokens that are not allowed have no probability. Throws Error(run) where none is.
  int32_t pick(Sampler& sampler, std::span<const float> logits, int64_t position);
  // Takes a token that was picked, not one that ends the text.
  void accept(int32_t token);
  // Whether the grammar has come to its end: no token can follow.
  bool ended() const { return grammar_ != nullptr && grammar_->must_end(); }

 private:
  GrammarMatcher* grammar_;
  std::vector<float> logits_;
};

}  // namespace headroom
