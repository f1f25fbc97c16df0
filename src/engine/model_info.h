// The contents of a model's files, and the memory to train it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weights/model_files.h"

namespace headroom {

struct TokenizerFacts {
  int64_t ids = 0;
  std::optional<int32_t> bos, eos;
};

struct ModelInfo {
  std::map<std::string, int64_t> weight_bytes;  // by the type that files store; empty without weights
  std::optional<TokenizerFacts> tokenizer;
  bool chat_template = false;
};

// Reads headers, and loads the tokenizer. All empty for a bare config.json. Throws Error(format).
ModelInfo read_model_info(const ModelFiles& model);

// What serving a model in fp32 holds in any case.
struct ServingNeeds {
  int64_t weight_bytes = 0;
  int64_t token_bytes = 0;  // keys and values of a token of context; 0 for a model that generates no text
};
ServingNeeds serving_needs(const ModelSpec& spec);

// The least budget of training with the default options in a --precision, bytes. Throws Error(usage).
int64_t least_budget_in(const ModelFiles& model, const std::string& precision);

}  // namespace headroom
