// Samples tokens for many texts, each with its own options, history and grammar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/sampler.h"

namespace headroom {

class GrammarMatcher;

// Holds a few numbers per vocabulary entry whatever the number of texts, and no state of a text. Makes no heap call
// after construction. The token depends only on the arguments.
class TokenDrawer {
 public:
  explicit TokenDrawer(int64_t vocab);

  // The token that follows `tokens`, of which the first `prompt` are the prompt's; its random number is that of
  // position tokens.size(). Null grammar: any. Tokens of `banned` are not sampled, unless the grammar allows nothing
  // else. Token ids are within the vocabulary. Throws Error(run) if the grammar allows none.
  int32_t draw(const SamplingOptions& options, std::span<const float> logits, std::span<const int32_t> tokens,
               size_t prompt, GrammarMatcher* grammar, std::span<const int32_t> banned = {});

  static int64_t memory_bytes(int64_t vocab);

 private:
  void add_bias(const SamplingOptions& options);
  void penalize(const SamplingOptions& options, std::span<const int32_t> tokens, size_t prompt);

  Sampler sampler_;
  std::vector<float> logits_;   // changed
  std::vector<int32_t> drawn_;  // how often each token was sampled, kSeen for one that has been handled; else 0
};

}  // namespace headroom
