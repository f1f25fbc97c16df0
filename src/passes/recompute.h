// recompute (activation checkpointing; Chen et al. 2016): drop saved activations and compute them again when the
// backward pass needs them.
//
// What: in the body of the training loop, a forward value that backward nodes read is either kept or its producers are
//   cloned just before the first backward node of its block that reads it. Example, one layer, block input only:
//     h = norm(x); y = linear(h)   ...   dx = linear_dx(dy); dw = linear_dw(h, dy)
//   becomes
//     h = norm(x); y = linear(h)   ...   h' = norm(x); dw = linear_dw(h', dy)
// Legal when: the clones compute the same bits: same op, attributes and inputs; nodes with effects are never cloned.
//   Values that leave their block (the residual stream) are always kept, so no clone reaches beyond one block; every
//   block clones for itself (a clone shared by distant consumers would live as long as what it replaces).
// Placed here because: after autodiff, which decides what is needed; before offset assignment.
// Saves: the dropped activations of every treated block except the one whose backward pass runs. Costs: the cloned
//   nodes' time.
// Manuals: M0 M1 M3 M4, M2 under FSDP (T06).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kRecompute{"recompute", PassStage::schedule, TechniqueKind::exact,
                                     "drop activations and compute them again in the backward pass"};

// What a block recomputes, as a set of tensor classes. A result of a class is recomputed if this needs no value that
// would be kept only for it; block_input recomputes everything except what leaves the block.
enum class Keep : uint8_t {
  norms = 1,
  elementwise = 2,
  attention = 4,     // the attention core, from q, k and v
  projections = 8,   // products before it: q, k, v
  output = 16,       // products of the core's result, up to the next norm
  mlp = 32,          // the other products
  all = 0,           // nothing is recomputed
  no_cheap = 3,      // norms and elementwise results
  no_attention = 7,  // and the attention core
  attention_only = 59,
  block_input = 63,
};
constexpr Keep operator|(Keep a, Keep b) {
  return static_cast<Keep>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}

// "keep-all", "drop-cheap", "drop-attention", "keep-attention", "block-input"; the name of another set lists the
// classes that are recomputed, as in "drop-cheap+mlp" or "drop-elementwise". The attention core alone has no name:
// "drop-attention" also drops what is cheap.
std::string keep_name(Keep keep);
std::optional<Keep> parse_keep(std::string_view name);

// `keep[b]` is block b's choice; blocks beyond the vector keep all. Casts and roundings of weights, and decoded values,
// are recomputed at each use whatever the choice. Acts on every loop body that holds both forward and backward nodes.
void recompute(Graph& graph, const std::vector<Keep>& keep);

}  // namespace headroom
