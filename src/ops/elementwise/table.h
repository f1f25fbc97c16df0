// The table of elementwise ops: the operands, results and formula of each. Rules and kernels follow from it.
//
// All operands and results of a call have the same shape and dtype: f32, bf16 or f16. Results are computed in the
// kernel's arithmetic and rounded once. cast and dropout have rules of their own, in their folders, and kernels from
// here; their result may have another dtype.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "ops/elementwise/formula.h"

namespace headroom {

// What the gradient reads in addition to the cotangent.
enum class SavedForGradient : uint8_t { nothing, inputs, results };

struct ElementwiseRow {
  std::string_view name;
  OperandNames operands;
  size_t results = 1;
  OpKind kind = OpKind::other;
  std::vector<Alias> aliases;
  // The formula for a call of `op`. Throws InternalError if an attribute is missing or wrong.
  Formula (*formula)(std::string_view op, const Attrs& attrs) = nullptr;
  std::string_view constant;  // the attribute with the formula's constant; empty: no constant
  std::string_view gradient;  // the op of its gradient, with the same attributes; empty: none
  SavedForGradient saved = SavedForGradient::nothing;
};

std::span<const ElementwiseRow> elementwise_rows();

// The ops with elementwise kernels: those of the table, cast and dropout.
std::vector<std::string_view> elementwise_kernels();

// What a kernel keeps of its node.
struct PreparedFormula {
  Formula formula = Formula::copy;
  double constant = 1;
  // The formula drops elements by the step's scalars (ops/step_scalars.h), the call's last operand.
  bool draws = false;
  uint64_t tensor = 0;  // the node's part of the key of its random bits
  uint32_t below = 0;   // as in FormulaDraws
};

// For one of elementwise_kernels(). Throws InternalError for another op, or if an attribute is missing or wrong.
PreparedFormula prepared_formula(std::string_view op, const Attrs& attrs);

}  // namespace headroom
