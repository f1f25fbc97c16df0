// The sizes behind the four ops of a linear layer, shared by their rules and kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/op.h"

namespace headroom {

// y[rows, outs] = x[rows, ins] w^T. `out_in` says how w is stored: [outs, ins], or [ins, outs] if false.
struct LinearShape {
  int64_t rows = 0;
  int64_t outs = 0;
  int64_t ins = 0;
  bool out_in = true;
};

// The inputs of linear and linear_dx that every call has: x or dy, and the weight.
struct LinearInputs {
  enum : int { left, weight };
};
// The inputs of linear_dw.
struct LinearGradInputs {
  enum : int { x, dy, accumulator };
};

// Indices of the optional inputs of linear and linear_dx; 0: there is none.
struct LinearOperands {
  size_t bias = 0;
  size_t low_rank = 0;  // p [rows, rank], then q [outs, rank] of linear or [rank, ins] of linear_dx
  size_t last = 0;      // the residual of linear, the addend of linear_dx
  size_t count = 2;
};

inline LinearOperands linear_operands(const Attrs& attrs) {
  LinearOperands inputs;
  if (attrs.integer("bias") != 0) inputs.bias = inputs.count++;
  if (attrs.integer("low_rank") != 0) {
    inputs.low_rank = inputs.count;
    inputs.count += 2;
  }
  if (attrs.integer("residual") != 0 || attrs.integer("addend") != 0) inputs.last = inputs.count++;
  return inputs;
}

inline bool is_batch_invariant(const Attrs& attrs) { return attrs.integer("batch_invariant") != 0; }

inline bool is_out_in(const Attrs& attrs) { return attrs.text("layout", "out_in") == "out_in"; }

// `wide` is a tensor whose leading dimensions are the rows; `weight` has w's shape.
inline LinearShape linear_shape(const ConcreteType& wide, const ConcreteType& weight, const Attrs& attrs) {
  LinearShape shape;
  shape.out_in = is_out_in(attrs);
  shape.outs = weight.dims.at(shape.out_in ? 0 : 1);
  shape.ins = weight.dims.at(shape.out_in ? 1 : 0);
  shape.rows = 1;
  for (size_t i = 0; i + 1 < wide.dims.size(); ++i) shape.rows *= wide.dims[i];
  return shape;
}

// Of linear and linear_dx, and of linear_dw.
inline LinearShape linear_shape(const OpCall& call) {
  return linear_shape(call.inputs[LinearInputs::left], call.inputs[LinearInputs::weight], call.attrs);
}
inline LinearShape linear_dw_shape(const OpCall& call) {
  return linear_shape(call.inputs[LinearGradInputs::x], call.inputs[LinearGradInputs::accumulator], call.attrs);
}

}  // namespace headroom
