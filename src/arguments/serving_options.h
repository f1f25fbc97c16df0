// The options of a server's model and sizes: `serve`, and `plan --serve` beside those of training.
#pragma once

#include "arguments/tier_options.h"
#include "engine/opened_model.h"
#include "engine/serving.h"

namespace headroom {

struct ServingArguments {
  InferenceOptions options;
  TierArguments tiers;  // become part of the options after parsing (resolve_serving)
  ServingOptions serving;
  std::vector<std::string> lora_modules;  // become part of `serving` too
  int64_t park_memory = 0;                // --park-memory; 0: not given
  double memory_share = 0;                // --gpu-memory-utilization; 0: not given
  bool quiet = false;
};

// All of them: --model, --adapter, --memory, --precision, --device and what `generate` has of these, --quiet, then
// add_serving_sizes().
void add_serving_options(CLI::App& app, ServingArguments& arguments);

// --max-model-len, --max-num-seqs, --max-num-batched-tokens, --block-size, --kv-cache-dtype, --admission,
// --park-memory, --gpu-memory-utilization and the slots of adapters (arguments/lora_slot_options.h) alone.
void add_serving_sizes(CLI::App& app, ServingArguments& arguments);

// Folds the tiers, and the share of memory where --memory is not given, into the options. Gives a note where something
// given has no meaning here, else nothing. Throws Error(usage) for values out of range.
std::string resolve_serving(ServingArguments& arguments);

}  // namespace headroom
