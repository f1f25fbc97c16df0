// The options for a server's model and sizes: of `serve`, and of `plan --serve` besides those for training.
#pragma once

#include "arguments/tier_options.h"
#include "engine/opened_model.h"
#include "engine/serving.h"

namespace headroom {

struct ServingArguments {
  InferenceOptions options;
  TierArguments tiers;  // added to the options after parsing (resolve_serving)
  ServingOptions serving;
  std::vector<std::string> lora_modules;  // also added to `serving`
  int64_t park_memory = 0;                // --park-memory; 0: not given
  double memory_share = 0;                // --gpu-memory-utilization; 0: not given
  bool quiet = false;
};

// All of them: --model, --adapter, --memory, --precision, --device, those of `generate` that apply, --quiet, and
// add_serving_sizes().
void add_serving_options(CLI::App& app, ServingArguments& arguments);

// Only --max-model-len, --max-num-seqs, --max-num-batched-tokens, --block-size, --kv-cache-dtype, --admission,
// --park-memory, --gpu-memory-utilization and those for adapter slots (arguments/lora_slot_options.h).
void add_serving_sizes(CLI::App& app, ServingArguments& arguments);

// Adds the tiers, and the share of memory if --memory is not given, to the options. Returns a note when a given option
// has no effect here, else an empty text. Throws Error(usage) for values out of range.
std::string resolve_serving(ServingArguments& arguments);

}  // namespace headroom
