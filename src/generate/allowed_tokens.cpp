#include "generate/allowed_tokens.h"

#include <limits>

#include "base/error.h"

namespace headroom {

int32_t keep_allowed(GrammarMatcher& grammar, std::span<const float> logits, std::span<float> kept) {
  const TokenMask& mask = grammar.allowed();
  HR_CHECK(mask.vocab() == static_cast<int64_t>(logits.size()), "a mask of {} tokens for {} logits", mask.vocab(),
           logits.size());
  if (mask.count() == 0)
    throw Error(ErrorKind::run, "the grammar cannot be followed: no token of the vocabulary continues the text",
                "it needs characters that the tokenizer has no tokens for, or nests rules beyond the limit");
  int32_t best = -1;
  float top = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const float logit = logits[id];
    const bool allowed = mask.allows(static_cast<int32_t>(id));
    kept[id] = allowed ? logit : -std::numeric_limits<float>::infinity();
    if (allowed && (best < 0 || logit > top)) best = static_cast<int32_t>(id), top = logit;
  }
  return best;
}

AllowedTokens::AllowedTokens(GrammarMatcher* grammar, int64_t vocab)
    : grammar_(grammar), logits_(grammar ? static_cast<size_t>(vocab) : 0) {}

int32_t AllowedTokens::pick(Sampler& sampler, std::span<const float> logits, int64_t position) {
  if (!grammar_) return sampler.pick(logits, position);
  const int32_t best = keep_allowed(*grammar_, logits, logits_);
  // Rounding of sums may make the sampler pick a token of probability zero.
  const int32_t token = sampler.pick(logits_, position);
  return grammar_->allowed().allows(token) ? token : best;
}

void AllowedTokens::accept(int32_t token) {
  if (grammar_) grammar_->accept(token);
}

}  // namespace headroom
