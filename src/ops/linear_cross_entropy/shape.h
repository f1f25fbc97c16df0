// The sizes behind the fused output projection and loss, shared by rules and kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ir/op.h"
#include "ops/cpu/matmul_scratch.h"
#include "ops/linear/shape.h"

namespace headroom {

// The inputs of the loss and of its gradient that stand at one place in every call that has them.
struct LossInputs {
  enum : int { x, weight, labels, losses, scale };
};
struct LossGradInputs {
  enum : int { x, weight, labels, scale, losses, accumulator };
};
// The results of the gradient; not every call trains the weight.
struct LossGradOutputs {
  enum : int { dx, losses, accumulator };
};

// Logits of at most `chunk` of the `rows` rows exist at a time, or as many of other rows (sliced.h).
struct LossShape {
  int64_t rows = 0;      // batch * sequence
  int64_t sequence = 0;  // positions per sequence; the last has no target
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t chunk = 0;
  bool out_in = true;
  Multiply multiply = Multiply::full;
  bool shift = true;           // a position predicts the next one's label
  bool bias = false;           // added to the logits
  bool hits = false;           // targets with the largest logit are counted
  bool rounds_weight = false;  // w is f32 and x is narrow
  bool trains_bias = false;
  bool narrow_logits = false;  // on a GPU: they are bf16, as x is
};

// The label that a position predicts: the next position's, or its own without shift.
struct Targets {
  const int32_t* labels = nullptr;
  int64_t sequence = 0;
  bool shift = true;
  static constexpr int32_t kNone = -100;
  int32_t at(int64_t row) const {
    if (!shift) return labels[row];
    return row % sequence == sequence - 1 ? kNone : labels[row + 1];
  }
};

// Whether the gradient op may keep its logits in bf16. Not with a bias, which is added in fp32, nor with hits, which
// rounding could change by making ties.
inline bool takes_narrow_logits(DType x, const Attrs& attrs) {
  return x == DType::bf16 && attrs.integer("bias") == 0 && attrs.integer("hits") == 0;
}

inline LossShape loss_shape(const OpCall& call) {
  const LinearShape linear = linear_shape(call.inputs[LossInputs::x], call.inputs[LossInputs::weight], call.attrs);
  const int64_t chunk = call.attrs.integer("chunk");
  return {linear.rows,
          call.inputs[LossInputs::labels].dims.back(),
          linear.outs,
          linear.ins,
          std::max<int64_t>(1, chunk > 0 ? std::min(chunk, linear.rows) : linear.rows),
          linear.out_in,
          multiply_of(call.attrs),
          call.attrs.integer("shift", 1) != 0,
          call.attrs.integer("bias") != 0,
          call.attrs.integer("hits") != 0,
          call.inputs[LossInputs::x].dtype != call.inputs[LossInputs::weight].dtype,
          call.attrs.integer("train_bias") != 0,
          call.attrs.text("logits") == "bf16"};
}

// The three products of a chunk of `rows` rows. dlogits are dense and overwrite the logits.
inline MatmulSpec logits_product(const LossShape& s, DType dtype, int64_t rows) {
  MatmulSpec spec;
  spec.size = {rows, s.vocabulary, s.hidden};
  spec.operand = dtype;
  spec.rounds_b = s.rounds_weight;
  spec.multiply = s.multiply;
  spec.b_transposed = s.out_in;
  spec.bias = s.bias;
  return spec;
}

inline MatmulSpec loss_dx_product(const LossShape& s, DType dtype, int64_t rows) {
  MatmulSpec spec;
  spec.size = {rows, s.hidden, s.vocabulary};
  spec.operand = spec.result = dtype;
  spec.rounds_b = s.rounds_weight;
  spec.multiply = s.multiply;
  spec.b_transposed = !s.out_in;
  return spec;
}

// acc += dlogits^T x [vocabulary, hidden], or x^T dlogits if w is stored [hidden, vocabulary].
inline MatmulSpec loss_dw_product(const LossShape& s, DType dtype, int64_t rows, bool adds) {
  MatmulSpec spec;
  spec.size = s.out_in ? MatmulSize{s.vocabulary, s.hidden, rows} : MatmulSize{s.hidden, s.vocabulary, rows};
  spec.operand = dtype;
  spec.multiply = s.multiply;
  spec.a_transposed = true;
  spec.addend = adds;
  return spec;
}

// Parts of the scratch, in this order, each a multiple of 64 bytes.
struct LossScratch {
  int64_t logits = 0;     // chunk * vocabulary f32; dlogits overwrite them
  int64_t losses = 0;     // one f64 per row of a chunk; with hits two, all losses first
  int64_t workspace = 0;  // of the largest product
  int64_t total() const { return logits + losses + workspace; }
};

// Scratch of the three products and the softmax of a chunk.
inline LossScratch product_loss_scratch(const LossShape& s, DType dtype, const DeviceFacts& facts, bool gradient,
                                        bool trains) {
  LossScratch scratch{align_up(s.chunk * s.vocabulary * 4, 64), align_up(s.chunk * (s.hits ? 16 : 8), 64), 0};
  // The last chunk may be shorter, and its products cut differently.
  for (int64_t rows : {s.chunk, s.rows % s.chunk == 0 ? s.chunk : s.rows % s.chunk}) {
    scratch.workspace = std::max(scratch.workspace, matmul_scratch(logits_product(s, dtype, rows), facts));
    if (!gradient) continue;
    scratch.workspace = std::max(scratch.workspace, matmul_scratch(loss_dx_product(s, dtype, rows), facts));
    if (trains)
      scratch.workspace = std::max(scratch.workspace, matmul_scratch(loss_dw_product(s, dtype, rows, true), facts));
  }
  return scratch;
}

}  // namespace headroom
