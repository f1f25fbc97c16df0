// The sampling loop over a program of prefill and the program decode of a generation plan.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generate/sampler.h"
#include "runtime/executor.h"

namespace headroom {

class GrammarMatcher;

inline constexpr int64_t kDefaultNewTokens = 128;

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_new_tokens = kDefaultNewTokens;
  std::vector<int32_t> stop_ids;
  GrammarMatcher* grammar = nullptr;  // the format of the text; its stop ids are those above
  std::string prefill = "prefill";    // the program that reads the prompt
};

// The times: a prompt read in chunks, then one run of the model per token.
struct GenerateTimes {
  int64_t prompt_tokens = 0, decoded_tokens = 0;  // the first new token comes from the prompt's run
  double prompt_seconds = 0, decode_seconds = 0;
};

// The sizes of prompt chunks to plan for, largest first: none much longer than the prompt.
std::vector<int64_t> prompt_chunks(int64_t prompt);

// How many tokens to generate after `prompt` tokens with a model of `positions`: those requested, by default
// kDefaultNewTokens or what the positions leave. Throws Error(usage) for less than 1, for more than the positions
// leave, and for a prompt that leaves none.
int64_t count_new_tokens(std::optional<int64_t> asked, int64_t prompt, int64_t positions);

// Fills the KV cache with `prompt` (at least one token) in chunks, then decodes. `on_token` is called for each new
// token and ends the loop by returning false. Stop ids are not passed on. With a grammar only its tokens are sampled,
// and the loop ends if nothing can follow. Returns the new tokens. Throws Error(run) if no token follows the grammar.
// prompt + max_new_tokens may not exceed the cache's positions (count_new_tokens). `times`, if given, is filled.
std::vector<int32_t> generate_tokens(Executor& executor, std::span<const int32_t> prompt,
                                     const GenerateOptions& options, const std::function<bool(int32_t)>& on_token,
                                     GenerateTimes* times = nullptr);

}  // namespace headroom
