// The prompt of `generate` as ids, and the grammar of its text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/generate.h"
#include "engine/generation_grammar.h"
#include "planner/request.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_files.h"

namespace headroom {

// A prompt, prepared as far as the budget allows.
struct PreparedPrompt {
  int64_t tokens = 0;  // without `ids`: an upper bound that leaves room for the new tokens
  std::optional<Tokenizer> tokenizer;
  std::optional<std::vector<int32_t>> ids;
  std::unique_ptr<GenerationGrammar> grammar;  // null: any text
};

// Books the prompt's memory before there is an arena, as it becomes known, loads the tokenizer, and encodes the prompt
// if it fits. Throws Error(usage | format).
PreparedPrompt prepare_prompt(const GenerationRequest& asked, const ModelFiles& model, PlanRequest& request);

// The same beside a loaded model with its tokenizer, if that takes at most `spare` bytes. Throws Error(usage | format).
PreparedPrompt prepare_prompt_beside(const GenerationRequest& asked, const ModelFiles& model,
                                     const Tokenizer& tokenizer, int64_t spare);

}  // namespace headroom
