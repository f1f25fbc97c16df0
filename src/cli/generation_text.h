// Where the text of `generate` begins and ends: the prompt's tokens, and what stops it.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "train/setup.h"

namespace headroom {

struct PromptOptions {
  std::string prompt;  // - is stdin; empty: begin with BOS
  bool chat = false;   // the prompt is a user's message, rendered by the model's chat template
  std::string system;  // a message before it; with chat
};

// The ids to continue. Throws Error(usage | format): no chat template, what it refuses, text that is no UTF-8, an id
// above the model's vocabulary.
std::vector<int32_t> prompt_ids(const PromptOptions& options, const Tokenizer& tokenizer, const ModelFiles& model);

// EOS of the tokenizer, every eos_token_id of config.json and generation_config.json, and those of `stops` that are
// special tokens, which no text shows. Throws Error(format) for a malformed generation_config.json.
std::vector<int32_t> stop_ids(const std::vector<std::string>& stops, const Tokenizer& tokenizer,
                              const ModelFiles& model);

}  // namespace headroom
