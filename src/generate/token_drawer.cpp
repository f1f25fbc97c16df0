#include "generate/token_drawer.h"

#include <algorithm>
#include <limits>

#include "generate/allowed_tokens.h"

namespace headroom {
namespace {

constexpr int32_t kSeen = -1;

bool penalizes(const SamplingOptions& options) {
  return options.presence_penalty != 0 || options.frequency_penalty != 0 || options.repetition_penalty != 1;
}

}  // namespace

TokenDrawer::TokenDrawer(int64_t vocab)
    : sampler_(vocab), logits_(static_cast<size_t>(vocab)), drawn_(static_cast<size_t>(vocab)) {}

int64_t TokenDrawer::memory_bytes(int64_t vocab) {
  return Sampler::memory_bytes(vocab) + vocab * static_cast<int64_t>(sizeof(float) + sizeof(int32_t));
}

int32_t TokenDrawer::draw(const SamplingOptions& options, std::span<const float> logits,
                          std::span<const int32_t> tokens, size_t prompt, GrammarMatcher* grammar,
                          std::span<const int32_t> banned) {
  const auto position = static_cast<int64_t>(tokens.size());
  if (!penalizes(options) && options.logit_bias.empty() && !grammar && banned.empty())
    return sampler_.pick(options, logits, position);
  std::copy(logits.begin(), logits.end(), logits_.begin());
  add_bias(options);
  if (penalizes(options)) penalize(options, tokens, prompt);
  for (const int32_t id : banned)
    if (id >= 0 && static_cast<size_t>(id) < logits_.size())
      logits_[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
  if (!grammar) return sampler_.pick(options, logits_, position);
  const int32_t best = keep_allowed(*grammar, logits_, logits_);
  // Rounding of sums may make the sampler pick a token of probability zero.
  const int32_t token = sampler_.pick(options, logits_, position);
  return grammar->allowed().allows(token) ? token : best;
}

void TokenDrawer::add_bias(const SamplingOptions& options) {
  for (const auto& [id, bias] : options.logit_bias) logits_[static_cast<size_t>(id)] += bias;
}

void TokenDrawer::penalize(const SamplingOptions& options, std::span<const int32_t> tokens, size_t prompt) {
  for (const int32_t id : tokens.subspan(prompt)) ++drawn_[static_cast<size_t>(id)];
  const auto repetition = static_cast<float>(options.repetition_penalty);
  for (const int32_t id : tokens) {
    int32_t& drawn = drawn_[static_cast<size_t>(id)];
    if (drawn == kSeen) continue;
    float& logit = logits_[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / repetition : logit * repetition;
    if (drawn > 0) logit -= static_cast<float>(options.frequency_penalty * drawn + options.presence_penalty);
    drawn = kSeen;
  }
  for (const int32_t id : tokens) drawn_[static_cast<size_t>(id)] = 0;
}

}  // namespace headroom
