// The sampling loop over the programs prefill and decode of a generation plan.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "generate/sampler.h"
#include "runtime/executor.h"

namespace headroom {

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_new_tokens = 128;
  std::vector<int32_t> stop_ids;
};

// Fills the KV cache with `prompt` (at least one token) in chunks, then decodes. `on_token` is called for each new
// token and ends the loop by returning false. Stop ids are not passed on. Returns the new tokens.
// prompt + max_new_tokens may not exceed the cache's positions (checked by the planner's caller).
std::vector<int32_t> generate_tokens(Executor& executor, std::span<const int32_t> prompt,
                                     const GenerateOptions& options, const std::function<bool(int32_t)>& on_token);

}  // namespace headroom
