// The products behind the experts' linear layers and the scratch their kernels book. How many rows an expert gets is
// known only when the router has run; the scratch covers every routing. The same functions size the plan and the
// kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "ops/cpu/matmul_scratch.h"

namespace headroom {

// The inputs of expert_linear and expert_linear_dx; not every call has an addend.
struct ExpertInputs {
  enum : int { rows, weight, offsets, addend };
};
// The inputs of expert_linear_dw.
struct ExpertGradInputs {
  enum : int { x, dy, offsets, accumulator };
};

// x[rows, ins] with w[experts, outs, ins]; each row is multiplied by the matrix of its expert.
struct ExpertShape {
  int64_t experts = 0;
  int64_t rows = 0;  // of all experts together
  int64_t outs = 0;
  int64_t ins = 0;
};

// `wide` is x or dy; `weight` has w's shape.
inline ExpertShape expert_shape(const ConcreteType& wide, const ConcreteType& weight) {
  return {weight.dims.at(0), element_count(wide.dims) / wide.dims.back(), weight.dims.at(1), weight.dims.at(2)};
}

// Of expert_linear and expert_linear_dx, and of expert_linear_dw.
inline ExpertShape rows_shape(const OpCall& call) {
  return expert_shape(call.inputs[ExpertInputs::rows], call.inputs[ExpertInputs::weight]);
}
inline ExpertShape gradient_shape(const OpCall& call) {
  return expert_shape(call.inputs[ExpertGradInputs::x], call.inputs[ExpertGradInputs::accumulator]);
}

// Throws InternalError if `offsets` do not cut the rows into one range per expert.
inline void check_offsets(const int32_t* offsets, const ExpertShape& shape) {
  HR_CHECK(offsets[0] == 0 && offsets[shape.experts] == shape.rows, "experts have {} of {} rows",
           offsets[shape.experts], shape.rows);
  for (int64_t e = 0; e < shape.experts; ++e)
    HR_CHECK(offsets[e] <= offsets[e + 1], "the rows of expert {} end before they begin", e);
}

// The products of an expert to which `rows` rows are sent: y = x w^T + addend.
inline MatmulSpec expert_product(const OpCall& call, int64_t rows) {
  const ExpertShape shape = rows_shape(call);
  MatmulSpec spec;
  spec.size = {rows, shape.outs, shape.ins};
  spec.operand = call.inputs[ExpertInputs::rows].dtype;
  spec.rounds_b = call.inputs[ExpertInputs::weight].dtype != spec.operand;
  spec.multiply = multiply_of(call.attrs);
  spec.result = call.outputs[0].dtype;
  spec.addend = call.attrs.integer("addend") != 0;
  spec.b_transposed = true;
  return spec;
}

// dx = dy w + addend
inline MatmulSpec expert_dx_product(const OpCall& call, int64_t rows) {
  const ExpertShape shape = rows_shape(call);
  MatmulSpec spec;
  spec.size = {rows, shape.ins, shape.outs};
  spec.operand = call.inputs[ExpertInputs::rows].dtype;
  spec.rounds_b = call.inputs[ExpertInputs::weight].dtype != spec.operand;
  spec.multiply = multiply_of(call.attrs);
  spec.result = call.outputs[0].dtype;
  spec.addend = call.attrs.integer("addend") != 0;
  return spec;
}

// acc += dy^T x; `adds` is false on the trip that overwrites the accumulator.
inline MatmulSpec expert_dw_product(const OpCall& call, int64_t rows, bool adds) {
  const ExpertShape shape = gradient_shape(call);
  MatmulSpec spec;
  spec.size = {shape.outs, shape.ins, rows};
  spec.operand = call.inputs[ExpertGradInputs::x].dtype;
  spec.multiply = multiply_of(call.attrs);
  spec.a_transposed = true;
  spec.addend = adds;
  return spec;
}

// The most scratch of blocked products like `most` with at most its rows, or at most its depth if A is transposed:
// every term of cut_matmul at its largest.
inline int64_t most_blocked_bytes(const MatmulSpec& most, const TileTraits& tile, int threads) {
  using namespace matmul_blocks;
  const bool varying_depth = most.a_transposed;
  const int64_t row_tiles = std::max<int64_t>(1, ceil_div(most.size.rows, tile.rows));
  const int64_t col_tiles = std::max<int64_t>(1, ceil_div(most.size.cols, tile.cols));
  const int64_t depth = align_up(std::max<int64_t>(1, most.size.depth), tile.depth_unit);
  const int64_t cap = align_up(most.a_transposed ? tile.depth_transposed : tile.depth_most, tile.depth_unit);
  const int64_t depth_block =
      varying_depth ? std::min(depth, cap) : align_up(even_piece(depth, tile.depth_most), tile.depth_unit);
  const int64_t strip = depth_block * tile.cols * tile.element_bytes;
  const int64_t strips = std::max<int64_t>(1, tile.packed_bytes / strip);
  const int64_t tile_bytes = tile.rows * tile.cols * 4;
  const int64_t a_strip = align_up(tile.rows * depth_block * tile.element_bytes, 64);
  const int64_t a = most.a_transposed ? std::min(row_tiles * a_strip, std::max(tile.strips_bytes, a_strip)) : a_strip;
  const int64_t b = std::min(col_tiles * strip, std::max(tile.packed_bytes, strip));
  int64_t sums = (varying_depth ? col_tiles : std::min(col_tiles, strips)) * tile_bytes;
  if (most.result != DType::f32 && depth_block < depth) sums = std::max(sums, kSumBytes);
  return std::min<int64_t>(std::max(1, threads), row_tiles * col_tiles) * (a + b + sums);
}

// Bytes booked for the products of all experts, one after the other: `most` has the rows of all of them.
inline int64_t expert_scratch(const MatmulSpec& most, const DeviceFacts& facts) {
  if (facts.gemm_workspace_cap > 0) return facts.gemm_workspace_cap;
  if (!facts.capabilities.has(kAvx2)) return 0;
  const int64_t simd = most_blocked_bytes(most, simd_tile(most.operand, most.multiply), facts.threads);
  const TileTraits* amx = facts.capabilities.has(kAmx) ? amx_tile(most.operand, most.multiply) : nullptr;
  return amx ? std::max(simd, most_blocked_bytes(most, *amx, facts.threads)) : simd;
}

}  // namespace headroom
