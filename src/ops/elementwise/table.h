// The table of elementwise ops: what each takes and gives, and by which formula. Rules and kernels follow from it.
//
// All operands and results of a call have one shape and one dtype, f32, bf16 or f16; results are computed in the
// arithmetic of the kernel and rounded once.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "ops/elementwise/formula.h"

namespace headroom {

// What the gradient reads before the cotangent.
enum class SavedForGradient : uint8_t { nothing, inputs, results };

struct ElementwiseRow {
  std::string_view name;
  OperandNames operands;
  size_t results = 1;
  OpKind kind = OpKind::other;
  std::vector<Alias> aliases;
  // The formula of a call of `op`. Throws InternalError where an attribute is missing or wrong.
  Formula (*formula)(std::string_view op, const Attrs& attrs) = nullptr;
  std::string_view constant;  // the attribute that is the formula's constant; empty: it has none
  std::string_view gradient;  // the op of its gradient, with its attributes; empty: it has none
  SavedForGradient saved = SavedForGradient::nothing;
};

std::span<const ElementwiseRow> elementwise_rows();
// Throws InternalError where there is none.
const ElementwiseRow& elementwise_row(std::string_view op);

}  // namespace headroom
