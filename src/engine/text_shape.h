// The sizes that the plan of a generation is made for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model_spec.h"

namespace headroom {

struct TextShape {
  int64_t positions = 0;        // of the cache: tokens of prompt and text
  std::vector<int64_t> chunks;  // of its prefill programs, the largest first
  int64_t wanted_chunk = 0;     // the largest that the prompt which it was planned for could take

  // The program that reads a prompt of so many tokens, followed by so many new ones, as a plan for it alone does:
  // bitwise the same tokens. Nothing if this plan has none.
  std::optional<std::string> prefill_for(const ModelSpec& spec, int64_t prompt, int64_t new_tokens) const;
};

// For texts of many lengths, of which one has so many tokens with its prompt.
TextShape roomy_shape(const ModelSpec& spec, int64_t tokens);

}  // namespace headroom
