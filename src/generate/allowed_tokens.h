// Sampling among the tokens that a grammar allows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/sampler.h"
#include "grammar/grammar_matcher.h"

namespace headroom {

// Writes `logits` to `kept`, which may be the same: -inf for tokens that the grammar does not allow. Returns the
// likeliest allowed one. Throws Error(run) if there is none.
int32_t keep_allowed(GrammarMatcher& grammar, std::span<const float> logits, std::span<float> kept);

class AllowedTokens {
 public:
  // Without a grammar (null) every token is allowed, and the sampler's own choice is used.
  AllowedTokens(GrammarMatcher* grammar, int64_t vocab);

  // As sampler.pick(), with probability zero for tokens that are not allowed. Throws Error(run) if none is allowed.
  int32_t pick(Sampler& sampler, std::span<const float> logits, int64_t position);
  // Advances by a picked token, which must not be one that ends the text.
  void accept(int32_t token);
  // Whether the grammar is at its end: no token can follow.
  bool ended() const { return grammar_ != nullptr && grammar_->must_end(); }

 private:
  GrammarMatcher* grammar_;
  std::vector<float> logits_;
};

}  // namespace headroom
