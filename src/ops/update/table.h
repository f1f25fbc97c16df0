// The table of elementwise updates: what attributes each op has and by which formula it updates. Rules and kernels
// follow from it.
//
// A call is (weight, gradient, states..., hyper, clip, [copy]) -> (weight', states'..., [copy']), each in the storage
// of its input. Gradient and states are f32, the weight f32, with a narrow copy or without, narrow
// (stream/updated_weight.h), or 8-bit codes with a scale per row (stream/row_codes.h). An element's new values follow
// from its old ones, the step's scalars and the attributes alone.
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
  // The formula of a call. Throws InternalError where attributes contradict each other.
  UpdateFormula (*formula)(const Attrs& attrs) = nullptr;
  bool in_blocks = false;  // states are kept in 8 bits
};

std::span<const UpdateRow> update_rows();
// Throws InternalError where there is none.
const UpdateRow& update_row(std::string_view op);

// The names of a formula's states.
std::vector<std::string_view> states_of(UpdateFormula formula);

// What an update's kernels keep of their node's attributes.
struct UpdatePlan {
  UpdateFormula formula;
  double number[kUpdateNumbers] = {};
  bool decay = false;
  double rate = 1;      // factor on the learning rate
  uint64_t tensor = 0;  // the weight's part of the key of its draws
  int64_t first = 0;    // index in the whole weight of the first element of the call's (ir/row_slice.h)
  int64_t columns = 0;  // of a weight in 8-bit codes with a scale per row (stream/row_codes.h); 0: numbers
  size_t states = 0;    // of the formula
  bool in_blocks = false;
  size_t tensors = 0;  // of the states: inputs 2 and on, outputs 1 and on; of blocks two a state
  size_t hyper = 2;    // among the inputs; clip stands behind it
  size_t copy = 1;     // among the outputs, where the call has so many

  UpdatePlan(std::string_view op, const Attrs& attrs);
  explicit UpdatePlan(const KernelSpec& spec);
  size_t clip() const { return hyper + 1; }
  UpdateStep step(const float* hyper) const;
};

}  // namespace headroom
