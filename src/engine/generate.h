// Text from a model: plan, prompt, weights, tokens as they come.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation_text.h"
#include "engine/grammar_options.h"
#include "engine/opened_model.h"
#include "generate/generator.h"

namespace headroom {

struct GenerationRequest {
  PromptOptions prompt;
  std::vector<std::string> stops;         // texts to end before, or special tokens to end at
  std::optional<int64_t> max_new_tokens;  // 128, or as many as the model's positions leave
  SamplingOptions sampling;
  GrammarOptions grammar;  // the format of the text
};

struct Generation {
  std::shared_ptr<const Plan> plan;  // not feasible: nothing was run
  bool feasible = false;             // false if the prompt cannot be encoded inside the budget, whatever the plan says
  std::vector<int32_t> ids;
  bool stopped = false;  // by the model or a stop text; else by the number of tokens, or by GenerationEvents::text
  GenerateTimes times;
  int64_t arena_high_water = 0;  // bytes
};

// All optional. Called on the calling thread.
struct GenerationEvents {
  // Gets each piece of text, complete characters only, and ends the generation by returning false.
  std::function<bool(std::string_view)> text;
  Notes note;
  // Gets the plan before the model is loaded by it, or before it is refused as not feasible.
  std::function<void(const Plan&)> planned;
};

// One text; nothing stays loaded. Throws Error. TextGenerator (text_generator.h) gives several.
Generation generate_text(const InferenceOptions& options, const GenerationRequest& request,
                         const GenerationEvents& events = {});

}  // namespace headroom
