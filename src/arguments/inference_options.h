// The options of `evaluate` and `generate`.
#pragma once

#include "arguments/tier_options.h"
#include "engine/generate.h"
#include "engine/opened_model.h"

namespace headroom {

struct InferenceArguments {
  InferenceOptions options;
  TierArguments tiers;           // become part of the options after parsing (resolve_tiers)
  GenerationRequest generation;  // for `generate`
  bool json = false;
  bool quiet = false;
};

// Options of every command that runs a model without training it. `precisions`: help of --precision.
void add_inference_options(CLI::App& app, InferenceOptions& options, TierArguments& tiers, const char* precisions);
void add_evaluate_options(CLI::App& app, InferenceArguments& arguments);
void add_generate_options(CLI::App& app, InferenceArguments& arguments);

}  // namespace headroom
