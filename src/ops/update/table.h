// The table of elementwise updates: the attributes of each op and the formula by which it updates. Rules and kernels
// follow from it.
//
// A call is (weight, gradient, states..., hyper, clip, [copy]) -> (weight', states'..., [copy']), each result in the
// storage of its input. Gradient and states are f32. The weight is f32, with or without a narrow copy, or narrow
// (stream/updated_weight.h), or 8-bit codes with a scale per row (stream/row_codes.h). An element's new values depend
// only on its old ones, its gradient, the step's scalars and the attributes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "ops/kernel.h"
#include "ops/update/formula.h"

namespace headroom {

// An attribute that is a number: least <= value < below.
struct UpdateNumber {
  std::string_view name;
  double least = 0;
  double below = 1;
};

struct UpdateRow {
  std::string_view name;
  std::vector<UpdateNumber> numbers;  // UpdateStep::number
  // The formula of a call. Throws InternalError if attributes contradict each other.
  UpdateFormula (*formula)(const Attrs& attrs) = nullptr;
  bool in_blocks = false;  // the states are kept in 8 bits
};

std::span<const UpdateRow> update_rows();
// Throws InternalError if there is none.
const UpdateRow& update_row(std::string_view op);

// The names of a formula's states.
std::vector<std::string_view> states_of(UpdateFormula formula);

// The inputs of every call, from `states` on as the plan says.
struct UpdateOpInputs {
  enum : int { weight, gradient, states };
};

// What an update's kernels keep of their node's attributes.
struct UpdatePlan {
  UpdateFormula formula;
  double number[kUpdateNumbers] = {};
  bool decay = false;
  double rate = 1;      // factor on the learning rate
  uint64_t tensor = 0;  // the weight's part of the key for stochastic rounding
  int64_t columns = 0;  // of a weight in 8-bit codes with a scale per row (stream/row_codes.h); 0: no codes
  size_t states = 0;    // of the formula
  bool in_blocks = false;
  size_t tensors = 0;  // of the states: inputs from UpdateOpInputs::states, outputs from 1; in blocks, two per state
  size_t hyper = UpdateOpInputs::states;  // index among the inputs; clip follows it
  size_t copy = 1;                        // index among the outputs, if the call has that many

  UpdatePlan(std::string_view op, const Attrs& attrs);
  UpdatePlan(const UpdateRow& row, const Attrs& attrs);
  explicit UpdatePlan(const KernelSpec& spec);
  size_t clip() const { return hyper + 1; }
  UpdateStep step(const float* hyper) const;
};

// The index of the call's first element in the whole weight.
inline int64_t first_element(const KernelCall& call) {
  const TensorView& weight = call.outputs[0];
  return call.first_row == 0 ? 0 : call.first_row * (weight.count() / weight.dims[0]);
}

}  // namespace headroom
