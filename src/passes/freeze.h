// freeze: only a part of the weights is trained.
//
// What: weights whose names match stay as they were loaded: no gradient accumulator, no gradient, no optimizer state,
//   no update. Autodiff starts from the weights that are left, so that below the first trained one nothing is kept
//   for a backward pass and nothing is computed in one.
// Legal when: named (--freeze): the result is another one. At least one weight must be left.
// Placed here because: it decides what autodiff differentiates.
// Saves: 4 bytes of gradient and the states (8 with AdamW) for each frozen value, and the activations below the first
//   trained weight. Costs: none; the step is faster.
// Manuals: M3 (T20).
#pragma once

#include <set>
#include <span>
#include <string>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kFreeze{"freeze", PassStage::model, TechniqueKind::lossy,
                                  "train some of the weights only: the others have no gradients and no states"};

// Whether a pattern matches a weight: its dot-separated parts match consecutive parts of the name, where `*` matches
// any letters within a part and `A-B` the whole numbers from A to B: "layers.0-5", "embed_tokens", "mlp.*_proj".
bool pattern_means(std::string_view pattern, std::string_view weight);

// The remedy for a pattern with commas, which patterns cannot have: the option repeated, with `between` instead of each
// comma ("--freeze a --freeze b"). Empty for other patterns.
std::string pattern_without_commas(std::string_view option, std::string_view pattern, std::string_view between);

// The last of a name's dot-separated parts: "q_proj" of "model.layers.0.self_attn.q_proj".
std::string_view last_part(std::string_view name);

// The persistent parameters of the graph that the patterns freeze. Throws Error(usage) for a pattern that matches no
// weight, naming the nearest part of a name, and if nothing would be left to train.
std::set<ValueId> frozen_weights(const Graph& graph, std::span<const std::string> patterns);

}  // namespace headroom
