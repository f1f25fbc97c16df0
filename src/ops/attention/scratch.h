// Scratch of the attention kernels: the plan and the kernels that carve it use the same formulas.
//
// Forward and cached attention: a fixed block per thread, whatever the sequence length. Gradient: a fixed block per
// thread, and fp32 sums of dk and dv for one kv head per thread (2 x S x d floats), so that one pass computes all five
// products. Decoding: one partial result per head and chunk of keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/bytes.h"
#include "ir/op.h"
#include "ops/attention/exact_products.h"
#include "ops/attention/shape.h"
#include "ops/cpu/capabilities.h"
#include "ops/cpu/scratch.h"

namespace headroom {

// Queries that share one block of vector columns: scores are kept transposed, [keys][kStrip].
constexpr int64_t kStrip = 32;
// Keys per step of the forward kernels.
constexpr int64_t kKeyTile = 128;
// The same with bf16 products. Scores exist for kScoreKeys keys at a time, so that they fit into the L1 cache.
constexpr int64_t kBf16Keys = 512;
constexpr int64_t kScoreKeys = 64;
// Strips of a forward task that share one packed tile of keys.
constexpr int64_t kLanes = 12;
// Keys per step of the gradient kernels, and strips of one query tile.
constexpr int64_t kGradKeys = 64;
constexpr int64_t kGradKeysBf16 = 128;
constexpr int64_t kGradStripsSimd = 2;
constexpr int64_t kGradStripsBf16 = 4;
// Keys per partial result in decoding.
constexpr int64_t kDecodeChunk = 128;
// Largest head dimension of the fast kernels.
constexpr int64_t kMaxFastDim = 256;

// Columns of a head as the fast kernels store them.
inline int64_t padded_dim(int64_t dim) { return align_up(dim, 32); }

// How a forward task groups strips: `heads` query heads of one group times `strips` consecutive strips of queries.
struct LaneGrid {
  int64_t heads = 1;
  int64_t strips = 1;
  int64_t count() const { return heads * strips; }
};
inline LaneGrid lane_grid(const AttentionShape& shape) {
  LaneGrid grid;
  grid.heads = std::min(shape.group(), kLanes);
  grid.strips = std::clamp<int64_t>((shape.queries + kStrip - 1) / kStrip, 1, kLanes / grid.heads);
  return grid;
}

// How the gradient spreads kv heads over the team. A wave is `groups` kv heads in `parts` parts each, one part per
// thread. It depends only on kv_heads and the team, so that a row's result does not depend on the batch.
struct GradWave {
  int64_t groups = 1;
  int64_t parts = 1;
  int64_t units() const { return groups * parts; }
};
inline GradWave grad_wave(const AttentionShape& shape, int64_t threads) {
  GradWave wave;
  wave.groups = std::gcd(threads, shape.kv_heads);
  wave.parts = threads / wave.groups;
  return wave;
}

// Forward, fp32 arithmetic.
struct ForwardSimdBlock {
  float* q;        // [lanes][dim][kStrip], transposed
  float* o;        // [lanes][dim][kStrip], transposed
  float* maximum;  // [lanes][kStrip], of the scaled scores in the base-2 domain
  float* sum;      // [lanes][kStrip]
  float* scores;   // [kKeyTile][kStrip]
  float* k;        // [kKeyTile][dim]: the tile of keys
  float* v;
  // Packed for exact products, else null: q of all lanes, k, v, and the probabilities of a strip.
  std::byte* exact_q;
  std::byte* exact_k;
  std::byte* exact_v;
  std::byte* exact_p;
};
inline ForwardSimdBlock forward_simd_block(Carver& carver, const AttentionShape& shape) {
  const int64_t lanes = lane_grid(shape).count(), dim = padded_dim(shape.dim);
  ForwardSimdBlock block{};
  block.q = carver.take<float>(lanes * dim * kStrip);
  block.o = carver.take<float>(lanes * dim * kStrip);
  block.maximum = carver.take<float>(lanes * kStrip);
  block.sum = carver.take<float>(lanes * kStrip);
  block.scores = carver.take<float>(kKeyTile * kStrip);
  block.k = carver.take<float>(kKeyTile * dim);
  block.v = carver.take<float>(kKeyTile * dim);
  return block;
}
// The same with f32 products on AMX tiles.
inline ForwardSimdBlock forward_exact_block(Carver& carver, const AttentionShape& shape) {
  const int64_t lanes = lane_grid(shape).count(), dim = padded_dim(shape.dim);
  ForwardSimdBlock block = forward_simd_block(carver, shape);
  block.exact_q = carver.take<std::byte>(lanes * exact_bytes(kStrip, dim));
  block.exact_k = carver.take<std::byte>(exact_bytes(kKeyTile, dim));
  block.exact_v = carver.take<std::byte>(exact_bytes(kKeyTile, dim));
  block.exact_p = carver.take<std::byte>(exact_bytes(kKeyTile, kStrip));
  return block;
}

// Forward, bf16 products. "pairs" is the layout of the right operand of a bf16 product: two rows interleaved.
struct ForwardBf16Block {
  uint16_t* q;       // [lanes][kStrip][dim]
  float* o;          // [lanes][kStrip][dim]
  float* reference;  // [lanes][kStrip], in the base-2 domain
  float* sum;        // [lanes][kStrip][16]: parts of a query's sum
  float* scores;     // [2][kStrip][kScoreKeys]
  uint16_t* p;       // [kBf16Keys / 32][kStrip][32]
  uint16_t* k;       // [kBf16Keys / 32][dim / 2][32] pairs, transposed
  uint16_t* v;       // [dim / 32][kBf16Keys / 2][32] pairs
  uint16_t* rows;    // [kScoreKeys][dim], to be packed
};
inline ForwardBf16Block forward_bf16_block(Carver& carver, const AttentionShape& shape) {
  const int64_t lanes = lane_grid(shape).count(), dim = padded_dim(shape.dim);
  ForwardBf16Block block{};
  block.q = carver.take<uint16_t>(lanes * kStrip * dim);
  block.o = carver.take<float>(lanes * kStrip * dim);
  block.reference = carver.take<float>(lanes * kStrip);
  block.sum = carver.take<float>(lanes * kStrip * 16);
  block.scores = carver.take<float>(2 * kStrip * kScoreKeys);
  block.p = carver.take<uint16_t>(kStrip * kBf16Keys);
  block.k = carver.take<uint16_t>(kBf16Keys * dim);
  block.v = carver.take<uint16_t>(kBf16Keys * dim);
  block.rows = carver.take<uint16_t>(kScoreKeys * dim);
  return block;
}

// Rows of the sums of dk and dv: rounded up to whole steps of every gradient kernel.
inline int64_t grad_sum_rows(const AttentionShape& shape) { return align_up(shape.keys, kGradKeysBf16); }

// Gradient, fp32 arithmetic: one per unit of a wave.
struct GradSimdBlock {
  float* dk;  // [keys rounded up][dim], sums over the unit's query tiles
  float* dv;
  float* q_t;  // [dim][columns], transposed; columns = kGradStripsSimd * kStrip
  float* grad_o_t;
  float* q;  // [columns][dim]
  float* grad_o;
  float* dq_t;    // [dim][columns]
  float* p;       // [kGradKeys][columns]
  float* ds;      // [kGradKeys][columns]
  float* lse;     // [columns], base-2 domain
  float* rowsum;  // [columns], rowsum(do * o)
  float* k;       // [kGradKeys][dim]
  float* v;
  // Packed for exact products, else null: k, v and transposed k of the kv head, in steps of keys; q and grad_o of the
  // query tile as right operands in both orientations; p and ds of a step as left operands, ds also as a right one.
  std::byte* exact_k;
  std::byte* exact_v;
  std::byte* exact_k_t;
  std::byte* exact_q_t;
  std::byte* exact_grad_o_t;
  std::byte* exact_q;
  std::byte* exact_grad_o;
  std::byte* exact_p;
  std::byte* exact_ds;
  std::byte* exact_ds_t;
};
inline GradSimdBlock grad_simd_block(Carver& carver, const AttentionShape& shape) {
  const int64_t dim = padded_dim(shape.dim), columns = kGradStripsSimd * kStrip;
  const int64_t rows = grad_sum_rows(shape);
  GradSimdBlock block{};
  block.dk = carver.take<float>(rows * dim);
  block.dv = carver.take<float>(rows * dim);
  block.q_t = carver.take<float>(dim * columns);
  block.grad_o_t = carver.take<float>(dim * columns);
  block.q = carver.take<float>(columns * dim);
  block.grad_o = carver.take<float>(columns * dim);
  block.dq_t = carver.take<float>(dim * columns);
  block.p = carver.take<float>(kGradKeys * columns);
  block.ds = carver.take<float>(kGradKeys * columns);
  block.lse = carver.take<float>(columns);
  block.rowsum = carver.take<float>(columns);
  block.k = carver.take<float>(kGradKeys * dim);
  block.v = carver.take<float>(kGradKeys * dim);
  return block;
}
// The same with f32 products on AMX tiles.
inline GradSimdBlock grad_exact_block(Carver& carver, const AttentionShape& shape) {
  const int64_t dim = padded_dim(shape.dim), columns = kGradStripsSimd * kStrip, rows = grad_sum_rows(shape);
  GradSimdBlock block = grad_simd_block(carver, shape);
  for (std::byte** keys : {&block.exact_k, &block.exact_v, &block.exact_k_t})
    *keys = carver.take<std::byte>(exact_bytes(rows, dim));
  for (std::byte** queries : {&block.exact_q_t, &block.exact_grad_o_t, &block.exact_q, &block.exact_grad_o})
    *queries = carver.take<std::byte>(exact_bytes(columns, dim));
  for (std::byte** scores : {&block.exact_p, &block.exact_ds, &block.exact_ds_t})
    *scores = carver.take<std::byte>(exact_bytes(kGradKeys, columns));
  return block;
}

// Gradient, bf16 products: one per unit of a wave.
struct GradBf16Block {
  float* dk;           // [keys rounded up][dim]; by tiles of keys [dim][kGradKeysBf16] while they are summed
  float* dv;           // likewise
  uint16_t* k_t;       // [keys / 32][dim / 2][32] pairs, transposed, of the unit's kv head
  uint16_t* v_t;       // likewise
  uint16_t* k;         // [tiles of keys][dim / 32][kGradKeysBf16 / 2][32] pairs
  uint16_t* q;         // [columns][dim]; columns = kGradStripsBf16 * kStrip
  uint16_t* grad_o;    // [columns][dim]
  uint16_t* q_t;       // [strips][dim][kStrip], transposed
  uint16_t* grad_o_t;  // likewise
  float* dq;           // [columns][dim]
  float* scores;       // [kStrip][32]
  float* dp;           // [kStrip][32]
  uint16_t* ds;        // [strips][kGradKeysBf16 / 32][kStrip][32]
  uint16_t* p_pairs;   // [kGradKeysBf16 / 32][columns / 2][32] pairs, keys in the order of pair_column
  uint16_t* ds_pairs;  // likewise
  float* lse;          // [columns], base-2 domain
  float* rowsum;       // [columns]
};
inline GradBf16Block grad_bf16_block(Carver& carver, const AttentionShape& shape) {
  const int64_t dim = padded_dim(shape.dim), columns = kGradStripsBf16 * kStrip;
  const int64_t rows = grad_sum_rows(shape);
  GradBf16Block block{};
  block.dk = carver.take<float>(rows * dim);
  block.dv = carver.take<float>(rows * dim);
  block.k_t = carver.take<uint16_t>(rows * dim);
  block.v_t = carver.take<uint16_t>(rows * dim);
  block.k = carver.take<uint16_t>(rows * dim);
  block.q = carver.take<uint16_t>(columns * dim);
  block.grad_o = carver.take<uint16_t>(columns * dim);
  block.q_t = carver.take<uint16_t>(columns * dim);
  block.grad_o_t = carver.take<uint16_t>(columns * dim);
  block.dq = carver.take<float>(columns * dim);
  block.scores = carver.take<float>(kStrip * 32);
  block.dp = carver.take<float>(kStrip * 32);
  block.ds = carver.take<uint16_t>(columns * kGradKeysBf16);
  block.p_pairs = carver.take<uint16_t>(columns * kGradKeysBf16);
  block.ds_pairs = carver.take<uint16_t>(columns * kGradKeysBf16);
  block.lse = carver.take<float>(columns);
  block.rowsum = carver.take<float>(columns);
  return block;
}

// Decoding, one query per batch row against the cache: a partial result per head and chunk of keys.
struct DecodeBlock {
  float* o;        // [batch * heads][chunks][dim], not divided by the sum
  float* maximum;  // [batch * heads][chunks], base-2 domain
  float* sum;      // [batch * heads][chunks]
};
inline int64_t decode_chunks(const AttentionShape& shape) { return (shape.keys + kDecodeChunk - 1) / kDecodeChunk; }
inline DecodeBlock decode_block(Carver& carver, const AttentionShape& shape) {
  const int64_t partials = shape.batch * shape.heads * decode_chunks(shape);
  DecodeBlock block{};
  block.o = carver.take<float>(partials * padded_dim(shape.dim));
  block.maximum = carver.take<float>(partials);
  block.sum = carver.take<float>(partials);
  return block;
}

// Bytes of one block.
template <typename Block>
int64_t block_bytes(Block (*carve)(Carver&, const AttentionShape&), const AttentionShape& shape) {
  Carver counter;
  carve(counter, shape);
  return counter.used();
}

// Carves a block that begins at `at`.
template <typename Block>
Block carve_block(Block (*carve)(Carver&, const AttentionShape&), const AttentionShape& shape, std::byte* at) {
  Carver carver(at);
  return carve(carver, shape);
}

// The reference kernels keep three rows of doubles per thread.
inline int64_t reference_row_bytes(const AttentionShape& shape) { return align_up(3 * shape.dim * 8, 64); }

// The largest need of any implementation, for attention and for cached attention with more than one query.
inline int64_t forward_scratch(const AttentionShape& shape, DType dtype, const DeviceFacts& facts) {
  int64_t bytes = reference_row_bytes(shape);
  if (facts.capabilities.has(kAvx2) && shape.dim <= kMaxFastDim) {
    bytes = std::max(bytes, block_bytes(forward_simd_block, shape));
    if (facts.capabilities.has(kAvx512Bf16) && dtype == DType::bf16)
      bytes = std::max(bytes, block_bytes(forward_bf16_block, shape));
    if (facts.capabilities.has(kAmx) && dtype == DType::f32)
      bytes = std::max(bytes, block_bytes(forward_exact_block, shape));
  }
  return bytes * facts.threads;
}

inline int64_t grad_scratch(const AttentionShape& shape, DType dtype, const DeviceFacts& facts) {
  const int64_t reference = reference_row_bytes(shape) * facts.threads;
  if (!facts.capabilities.has(kAvx2) || shape.dim > kMaxFastDim) return reference;
  int64_t unit = block_bytes(grad_simd_block, shape);
  if (facts.capabilities.has(kAmx) && dtype == DType::f32) unit = block_bytes(grad_exact_block, shape);
  if (facts.capabilities.has(kAvx512Bf16) && dtype == DType::bf16)
    unit = std::max(unit, block_bytes(grad_bf16_block, shape));
  return std::max(reference, unit * grad_wave(shape, facts.threads).units());
}

inline int64_t cached_scratch(const AttentionShape& shape, DType dtype, const DeviceFacts& facts) {
  const int64_t forward = forward_scratch(shape, dtype, facts);
  if (shape.queries != 1 || !facts.capabilities.has(kAvx2) || shape.dim > kMaxFastDim) return forward;
  return std::max(forward, block_bytes(decode_block, shape));
}

}  // namespace headroom
