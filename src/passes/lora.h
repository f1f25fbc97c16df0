// lora: trains small matrices on top of frozen ones (Hu et al. 2021, "LoRA", equation 3).
//
// What: every targeted product y = x W^T gets a second path through a bottleneck of r values per token,
//     t = linear(x, A); s = scale(t) {factor = alpha / r}; y' = y + linear(s, B)
//   with A [r, in] and B [out, r]; rank-stabilised (Kalajdzievski 2023): factor = alpha / sqrt(r). All other weights
//   are frozen, except the modules to save, which are trained in full. With a dropout rate t = linear(dropout(x), A) in
//   training. A router's product likewise. Products of experts get matrices for each expert:
//     t = expert_linear(x, A, offsets); s = scale(t); y' = expert_linear(s, B, offsets, y) {addend}
//   with A [experts, r, in] and B [experts, out, r]; an expert's gate and up share t (passes/expert_adapters.h). With
//   DoRA the rows of the adapted weight also get trained lengths (passes/magnitudes.h).
// Legal when: named (--lora-r): another, smaller model is trained.
// Placed here because: before bf16-mixed, so that the new products narrow like the others, and before autodiff, which
//   then differentiates for A and B alone.
// Saves: gradients and optimizer states of all frozen weights. Costs: two thin products per target; after autodiff
//   some of them join the wide ones (passes/low_rank_products.h).
// Manuals: M3, M2 (T21).
#pragma once

#include <string>
#include <vector>

#include "passes/expert_adapters.h"
#include "passes/magnitudes.h"
#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kLora{"lora", PassStage::model, TechniqueKind::lossy,
                                "train small matrices of rank r on top of the frozen weights"};

struct LoraOptions {
  int64_t rank = 0;  // 0: none
  double alpha = 8;
  double dropout = 0;  // rate on the input of A, in training
  bool rank_stabilised = false;
  std::vector<std::string> targets{"all-linear"};  // patterns of module names (passes/freeze.h)
  std::vector<std::string> modules_to_save;        // trained in full with the adapters
  bool decomposed = false;                         // DoRA: the lengths of the adapted weight's rows are trained too

  bool operator==(const LoraOptions&) const = default;
};

// Adds the adapters to every targeted product of the region; a second region that reads the same weights gets the same
// adapters. The head's logits get none. Returns the number of products. Throws Error(usage) for a target that matches
// none, with the existing names, for one half of what experts share, for dropout before experts or routers, and for
// DoRA with dropout, for experts, routers and matrices stored [in, out].
int64_t add_lora(Graph& graph, RegionId region, const LoraOptions& options,
                 RowLengthsIn lengths = RowLengthsIn::forward);

// The weights that stay frozen: all except adapters and modules to save. Throws Error(usage) for an unknown module.
std::vector<ValueId> lora_frozen(const Graph& graph, const LoraOptions& options);

// The prefix of every name in an adapter's file.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

// Names as PEFT stores them: "base_model.model." + module + ".lora_A.weight"; experts' are in expert_adapters.h.
std::string lora_name(std::string_view weight, char which);
// Whether a name is that of an A, of a B or of a magnitude.
bool is_lora_name(std::string_view name);

}  // namespace headroom
