// Symbolic reverse-mode differentiation: appends the backward nodes of a region without loops to that region.
#pragma once

#include <map>
#include <vector>

#include "ir/builder.h"

namespace headroom {

// Where gradients go.
struct GradientSinks {
  // Trained parameter -> the accumulator value to start from (an f32 value of the parameter's shape, usually a param of
  // the loop body). Updated in place: afterwards it holds the accumulator's last value.
  std::map<ValueId, ValueId> accumulators;
  // A value that stands for a parameter in another dtype (a persistent bf16 copy) -> that parameter.
  std::map<ValueId, ValueId> copies;
};

// Differentiates the nodes that `build`'s region holds, from `roots` (outputs of loss nodes, whose vjp needs no
// incoming cotangent). Nodes are visited in reverse order; each vjp's nodes get the forward node's block and
// Stage::backward. Forward nodes that a vjp replaces (fused losses) are removed when nothing needs them; `roots` are
// updated to the replacements. Throws InternalError when an op on the path is not differentiable.
void differentiate(Builder& build, std::vector<ValueId>& roots, GradientSinks& sinks);

}  // namespace headroom
