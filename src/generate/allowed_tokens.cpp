#include "generate/allowed_tokens.h"

#include <limits>

#include "base/error.h"

namespace headroom {

AllowedTokens::AllowedTokens(GrammarMatcher* grammar, int64_t vocab)
    : grammar_(grammar), logits_(grammar ? static_cast<size_t>(vocab) : 0) {}

int32_t AllowedTokens::pick(Sampler& sampler, std::span<const float> logits, int64_t position) {
  if (!grammar_) return sampler.pick(logits, position);
  const TokenMask& mask = grammar_->allowed();
  HR_CHECK(mask.vocab() == static_cast<int64_t>(logits.size()), "a mask of {} tokens for {} logits", mask.vocab(),
           logits.size());
  if (mask.count() == 0)
    throw Error(ErrorKind::run, "the grammar cannot be followed: no token of the vocabulary continues the text",
                "it wants characters that the tokenizer has no tokens for, or rules within rules beyond the limit");
  int32_t best = -1;  // of the allowed ones
  for (size_t id = 0; id < logits.size(); ++id) {
    const bool allowed = mask.allows(static_cast<int32_t>(id));
    logits_[id] = allowed ? logits[id] : -std::numeric_limits<float>::infinity();
    if (allowed && (best < 0 || logits[id] > logits[static_cast<size_t>(best)])) best = static_cast<int32_t>(id);
  }
  // Rounding of sums may leave the sampler with a token that has no probability.
  const int32_t token = sampler.pick(logits_, position);
  return mask.allows(token) ? token : best;
}

void AllowedTokens::accept(int32_t token) {
  if (grammar_) grammar_->accept(token);
}

}  // namespace headroom
