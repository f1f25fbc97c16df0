// The beginning and end of a text of `generate`: the prompt's tokens, and what stops it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "weights/model_files.h"

namespace headroom {

// The longest prompt that is read from a stream.
inline constexpr int64_t kMostPromptBytes = int64_t{16} << 20;

struct PromptOptions {
  std::string prompt;  // empty: start with BOS
  bool chat = false;   // the prompt is a user's message, rendered by the model's chat template
  std::string system;  // a message before it; with chat
};

// Checks that the options fit together and the model has what they need. Throws Error(usage).
void check_prompt(const PromptOptions& options, const ModelFiles& model);

// Heap bytes for rendering a prompt; 0 if it is not a chat.
int64_t rendering_bytes(const PromptOptions& options);

// The text to encode: the prompt, or the chat rendered with the model's template, within rendering_bytes(). Throws
// Error(format) if the template refuses it.
std::string prompt_text(const PromptOptions& options, const Tokenizer& tokenizer, const ModelFiles& model);

// The ids to continue. Throws Error(usage | format): text that is not UTF-8, an id above the model's vocabulary.
std::vector<int32_t> prompt_ids(const PromptOptions& options, const std::string& text, const Tokenizer& tokenizer,
                                const ModelFiles& model);

// EOS of the tokenizer, every eos_token_id of config.json and generation_config.json, and those of `stops` that are
// special tokens, which no text shows. Throws Error(format) for a malformed generation_config.json.
std::vector<int32_t> stop_ids(const std::vector<std::string>& stops, const Tokenizer& tokenizer,
                              const ModelFiles& model);

}  // namespace headroom
