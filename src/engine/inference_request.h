// Planning requests of evaluation and generation, and the plan of a generation: from config and headers alone.
#pragma once

#include <span>

#include "options/machine_options.h"
#include "options/technique_options.h"
#include "planner/inference.h"
#include "weights/model_files.h"

namespace headroom {

// The request of a plan that only reads the weights, without program and length: budgets of `machine`, the precision
// and the pins of `techniques`. `tokenizer_stays`: it is held together with the arena; `adapter`: bytes held by an
// adapter's files. Throws Error(usage) as device_facts().
PlanRequest inference_request(const MachineOptions& machine, const TechniqueOptions& techniques,
                              const ModelFiles& model, bool tokenizer_stays, int64_t adapter = 0);

// Throws Error(usage) for a model that does not predict the next token.
void refuse_without_text(const ModelFiles& model);

// The plan of a generation, whose keys and values are kept for every token of prompt and answer, in 16 bits with
// bf16-true and 16-true. Throws as plan_generation().
Plan generation_plan(PlanRequest request, const ModelSpec& spec, const GenerationWork& work);
// The plan of any number of texts of up to so many tokens with their prompts, read in `chunks` (plan_texts()).
Plan texts_plan(PlanRequest request, const ModelFiles& model, int64_t positions, std::span<const int64_t> chunks);

}  // namespace headroom
