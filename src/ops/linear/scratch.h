// The products behind a linear layer and the scratch their kernels book; the same functions size the plan and the
// kernels.
#pragma once

#include "ops/cpu/int8_matmul_scratch.h"
#include "ops/linear/int8_blocks.h"
#include "ops/linear/row_blocks.h"
#include "ops/linear/shape.h"
#include "ops/linear/wide_rows.h"

namespace headroom {

// The rank of p q, 0 if there is none.
inline int64_t low_rank_of(const OpCall& call) {
  const size_t p = linear_operands(call.attrs).low_rank;
  return p == 0 ? 0 : call.inputs[p].dims.back();
}

// Rows of a weight in blocks of codes that a thread decodes at a time: whole tiles of every dot product.
constexpr int64_t kDecodedRows = 24;
inline int64_t most_decoded_rows(bool tiles, int64_t rows) { return tiles ? decoded_tile_rows(rows) : kDecodedRows; }

// `x`: the dtype of the decoded elements.
inline int64_t decoded_row_bytes(int64_t ins, DType x) { return align_up(ins * dtype_bytes(x), 64); }
inline int64_t decoded_rows_bytes(int64_t ins, DType x, int64_t threads, int64_t rows = kDecodedRows) {
  return threads * rows * decoded_row_bytes(ins, x);
}

// Sums too deep for 32 bits are not computed with 8-bit codes.
inline Multiply multiply_at(const OpCall& call, int64_t depth) {
  const Multiply how = multiply_of(call.attrs);
  return how == Multiply::int8 && depth > kInt8Depth ? Multiply::full : how;
}

inline int64_t product_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  return spec.multiply == Multiply::int8 ? int8_scratch(spec, facts) : matmul_scratch(spec, facts);
}

// y[rows, outs] = x w^T + p q^T + bias + residual
inline MatmulSpec linear_product(const OpCall& call) {
  const LinearShape shape = linear_shape(call);
  MatmulSpec spec;
  spec.size = {shape.rows, shape.outs, shape.ins};
  spec.operand = call.inputs[LinearInputs::left].dtype;
  spec.multiply = multiply_at(call, spec.size.depth);
  spec.result = call.outputs[0].dtype;
  spec.rounds_b = call.inputs[LinearInputs::weight].dtype != spec.operand;
  spec.b_storage = call.inputs[LinearInputs::weight].storage;
  spec.b_transposed = shape.out_in;
  spec.bias = call.attrs.integer("bias") != 0;
  spec.low_rank = low_rank_of(call);
  spec.q_transposed = true;
  spec.addend = call.attrs.integer("residual") != 0;
  return spec;
}

// Whether batch-invariant products with a dense weight convert x and rows of the weight.
inline bool widens_both(const RowTypes& types, int64_t rows, const DeviceFacts& facts) {
  return widens_rows(types.x, facts.capabilities) && types.w == types.x && rows >= kLeastWideRows;
}

// Scratch of the kernels that read the weight as it is stored: rows of it that are decoded or converted, and behind
// them x in f32 or in blocks of rows. A batch-invariant product uses them for every number of rows.
inline int64_t rows_scratch(const OpCall& call, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(call);
  const bool invariant = is_batch_invariant(call.attrs);
  if (shape.rows > 8 && !invariant) return 0;
  const ConcreteType& x = call.inputs[LinearInputs::left];
  const ConcreteType& weight = call.inputs[LinearInputs::weight];
  const bool dense = weight.storage.dense();
  const RowTypes types{x.dtype, dense ? weight.dtype : x.dtype, call.outputs[0].dtype};
  const bool wide =
      dense ? invariant && widens_both(types, shape.rows, facts) : widens_rows(x.dtype, facts.capabilities);
  if (shape.out_in && wide)
    return decoded_rows_bytes(shape.ins, DType::f32, facts.threads) + wide_bytes(shape.rows, shape.ins);
  const bool tiles = invariant && runs_on_tiles(types, shape.ins, facts.capabilities);
  const int64_t rows = most_decoded_rows(tiles, shape.rows);
  const int64_t decoded = dense ? 0 : decoded_rows_bytes(shape.ins, x.dtype, facts.threads, rows);
  return decoded + (invariant && shape.out_in ? arranged_bytes(types, shape.rows, shape.ins, facts.capabilities) : 0);
}

// Scratch of the CPU kernels of linear.
inline int64_t linear_scratch(const OpCall& call, const DeviceFacts& facts) {
  if (multiplies_int8_blocks(call.attrs)) return int8_blocks_scratch(call, facts);
  return std::max(product_scratch(linear_product(call), facts), rows_scratch(call, facts));
}

// dx[rows, ins] = dy w + p q + addend
inline MatmulSpec linear_dx_product(const OpCall& call) {
  const LinearShape shape = linear_shape(call);
  MatmulSpec spec;
  spec.size = {shape.rows, shape.ins, shape.outs};
  spec.operand = call.inputs[LinearInputs::left].dtype;
  spec.multiply = multiply_at(call, spec.size.depth);
  spec.result = call.outputs[0].dtype;
  spec.rounds_b = call.inputs[LinearInputs::weight].dtype != spec.operand;
  spec.b_storage = call.inputs[LinearInputs::weight].storage;
  spec.b_transposed = !shape.out_in;
  spec.low_rank = low_rank_of(call);
  spec.addend = call.attrs.integer("addend") != 0;
  return spec;
}

// acc += dy^T x, or x^T dy if w is stored [ins, outs]; `adds` is false on the trip that overwrites the accumulator.
inline MatmulSpec linear_dw_product(const OpCall& call, bool adds) {
  const LinearShape shape = linear_dw_shape(call);
  MatmulSpec spec;
  spec.size =
      shape.out_in ? MatmulSize{shape.outs, shape.ins, shape.rows} : MatmulSize{shape.ins, shape.outs, shape.rows};
  spec.operand = call.inputs[LinearGradInputs::x].dtype;
  spec.multiply = multiply_at(call, spec.size.depth);
  spec.a_transposed = true;
  spec.addend = adds;
  return spec;
}

}  // namespace headroom
