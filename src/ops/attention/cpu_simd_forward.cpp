// Forward attention in fp32 arithmetic. Scores are kept transposed, [keys][queries], so that the softmax works down the
// vector columns and both products read their left operand directly from k and v.
#include <cmath>
#include <cstring>
#include <numbers>

#include "ops/attention/forward_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_TARGET_INCLUDE "ops/attention/cpu_simd_forward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention/simd_tile-inl.h"

#include "ops/attention/score_dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

constexpr float kHidden = -1e30f;  // below every visible score

// Packed operands: a strip's q as the right operand of the scores; then the rows of k and the columns of v as left
// operands.
ExactBlocks exact_queries(const SimdForward::State& state, int64_t lane) {
  const int64_t bytes = exact_bytes(kStrip, padded_dim(state.shape.dim));
  return {state.block.exact_q + lane * bytes, bytes, kExactBlock};
}
ExactBlocks exact_keys(const SimdForward::State& state) {
  return {state.block.exact_k, exact_bytes(32, padded_dim(state.shape.dim)), kExactBlock};
}
ExactBlocks exact_values(const SimdForward::State& state) {
  return {state.block.exact_v, exact_bytes(32, kKeyTile), kExactBlock};
}

void forward_load_queries(SimdForward::State& state, int64_t lane, const void* q, int64_t rows) {
  const AttentionShape& shape = state.shape;
  const ForwardSimdBlock& block = state.block;
  const int64_t width = padded_dim(shape.dim);
  gather_rows(q, state.q_dtype, shape.heads * shape.dim, rows, kStrip, shape.dim, block.k, width);
  if (block.exact_q)
    pack_exact_right_turned({block.k, width, kStrip, width}, exact_queries(state, lane));
  else
    transpose(block.k, width, kStrip, width, block.q + lane * width * kStrip, kStrip);
  std::fill_n(block.o + lane * width * kStrip, width * kStrip, 0.0f);
  std::fill_n(block.maximum + lane * kStrip, kStrip, kHidden);
  std::fill_n(block.sum + lane * kStrip, kStrip, 0.0f);
}

void forward_load_keys(SimdForward::State& state, const void* k, const void* v, int64_t count) {
  const AttentionShape& shape = state.shape;
  const int64_t stride = shape.kv_heads * shape.dim, width = padded_dim(shape.dim);
  const bool exact = state.block.exact_k != nullptr;
  const int64_t rows = exact ? align_up(count, 32) : count;
  gather_rows(k, state.kv_dtype, stride, count, rows, shape.dim, state.block.k, width);
  gather_rows(v, state.kv_dtype, stride, count, rows, shape.dim, state.block.v, width);
  if (!exact) return;
  pack_exact_left({state.block.k, width, rows, width}, exact_keys(state));
  pack_exact_left_turned({state.block.v, width, rows, width}, exact_values(state));
}

// Turns the scores of one vector of columns into probabilities. Returns the factor for earlier sums.
HWY_INLINE Vector softmax_column(float* scores, const StripStep& step, int32_t column, float* maximum, float* sum,
                                 float scale) {
  const VectorTag d;
  const ColumnMask mask{step.visible_begin, step.visible_end, step.segmented ? step.starts.data() : nullptr};
  Vector largest = hn::Set(d, kHidden);
  for (int32_t row = step.begin; row < step.end; ++row) {
    float* at = scores + row * kStrip + column;
    Vector score = hn::LoadU(d, at);
    if (step.masked) {
      score = mask.apply(score, hn::Set(d, kHidden), row, column);
      hn::StoreU(score, d, at);
    }
    largest = hn::Max(score, largest);
  }
  const Vector before = hn::LoadU(d, maximum + column), scales = hn::Set(d, scale);
  const Vector now = hn::Max(hn::Mul(largest, scales), before);
  const Vector factor = exp2_of(hn::Sub(before, now));
  Vector total = hn::Zero(d);
  for (int32_t row = step.begin; row < step.end; ++row) {
    float* at = scores + row * kStrip + column;
    const Vector p = exp2_of(hn::MulSub(hn::LoadU(d, at), scales, now));
    total = hn::Add(total, p);
    hn::StoreU(p, d, at);
  }
  hn::StoreU(now, d, maximum + column);
  hn::StoreU(hn::MulAdd(hn::LoadU(d, sum + column), factor, total), d, sum + column);
  return factor;
}

// Applies dropout to the probabilities of all columns.
HWY_INLINE void drop_scores(float* scores, const StripStep& step, const RowKeys<kStrip>& keys, uint32_t below) {
  const VectorTag d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  for (int32_t column = 0; column < kStrip; column += lanes) {
    DroppedColumns dropped(keys.low.data() + column, keys.high.data() + column, below);
    for (int32_t row = step.begin; row < step.end; ++row) {
      float* at = scores + row * kStrip + column;
      hn::StoreU(dropped.apply(hn::LoadU(d, at), step.tile + row), d, at);
    }
  }
}

// Multiplies the rows of k from step.begin by a strip of q.
HWY_INLINE void multiply_queries(const SimdForward::State& state, int64_t lane, const StripStep& step) {
  const ForwardSimdBlock& block = state.block;
  const int64_t dim = state.shape.dim, width = padded_dim(dim), rows = step.end - step.begin;
  float* const scores = block.scores + step.begin * kStrip;
  if (block.exact_q)
    multiply_exact({exact_keys(state).from(step.begin / 32, 0), exact_queries(state, lane), scores, kStrip,
                    align_up(rows, 32), kStrip, width, false});
  else
    multiply({block.k + step.begin * width, width, 1}, block.q + lane * width * kStrip, kStrip, scores, kStrip, rows,
             kStrip, dim, false);
}

// Adds the columns of v times the probabilities to a strip of o.
HWY_INLINE void multiply_values(const SimdForward::State& state, int64_t lane, const StripStep& step) {
  const ForwardSimdBlock& block = state.block;
  const int64_t dim = state.shape.dim, width = padded_dim(dim), rows = step.end - step.begin;
  float* const scores = block.scores + step.begin * kStrip;
  float* const o = block.o + lane * width * kStrip;
  if (!block.exact_q)
    return multiply({block.v + step.begin * width, 1, width}, scores, kStrip, o, kStrip, dim, kStrip, rows, true);
  const int64_t depth = align_up(rows, 32);
  std::fill_n(scores + rows * kStrip, (depth - rows) * kStrip, 0.0f);
  const ExactBlocks p{block.exact_p, exact_bytes(kStrip, kKeyTile), kExactBlock};
  pack_exact_right({scores, kStrip, depth, kStrip}, p);
  multiply_exact({exact_values(state).from(0, step.begin / 32), p, o, kStrip, width, kStrip, depth, true});
}

void forward_step(SimdForward::State& state, int64_t lane, const StripStep& step) {
  const VectorTag d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  const ForwardSimdBlock& block = state.block;
  const int64_t dim = state.shape.dim, width = padded_dim(dim), rows = step.end - step.begin;
  float* scores = block.scores + step.begin * kStrip;
  float* o = block.o + lane * width * kStrip;
  multiply_queries(state, lane, step);
  float scale = static_cast<float>(state.shape.scale * std::numbers::log2e);
  if (state.shape.softcap > 0) {
    const double cap = state.shape.softcap;
    cap_scores(scores, rows * kStrip, static_cast<float>(state.shape.scale / cap), static_cast<float>(cap));
    scale = std::numbers::log2e_v<float>;
  }
  for (int32_t column = 0; column < kStrip; column += lanes) {
    const Vector factor =
        softmax_column(block.scores, step, column, block.maximum + lane * kStrip, block.sum + lane * kStrip, scale);
    if (hn::AllTrue(d, hn::Eq(factor, hn::Set(d, 1.0f)))) continue;
    for (int64_t i = 0; i < dim; ++i) {
      float* at = o + i * kStrip + column;
      hn::StoreU(hn::Mul(hn::LoadU(d, at), factor), d, at);
    }
  }
  if (state.dropout.drops())
    drop_scores(block.scores, step, state.row_keys[static_cast<size_t>(lane)], state.dropout.rate.below);
  multiply_values(state, lane, step);
}

void forward_store(SimdForward::State& state, int64_t lane, void* o, float* lse, int64_t rows) {
  const AttentionShape& shape = state.shape;
  const ForwardSimdBlock& block = state.block;
  const int64_t width = padded_dim(shape.dim), element = state.q_dtype == DType::f32 ? 4 : 2;
  const float* maximum = block.maximum + lane * kStrip;
  const float* sum = block.sum + lane * kStrip;
  transpose(block.o + lane * width * kStrip, kStrip, width, kStrip, block.k, width);
  for (int64_t i = 0; i < rows; ++i) {
    narrow(block.k + i * width, static_cast<std::byte*>(o) + i * shape.heads * shape.dim * element, state.q_dtype,
           shape.dim, state.dropout.rate.scale / sum[i]);
    if (lse) lse[i] = maximum[i] * std::numbers::ln2_v<float> + std::log(sum[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(forward_load_queries);
HWY_EXPORT(forward_load_keys);
HWY_EXPORT(forward_step);
HWY_EXPORT(forward_store);

SimdForward::SimdForward(const ForwardCall& call, const ForwardSimdBlock& block)
    : state_{call.shape, call.q_dtype, call.kv_dtype, block, call.dropout, {}} {}
SimdForward::SimdForward(const ForwardCall& call, std::byte* block)
    : SimdForward(call, carve_block(forward_simd_block, call.shape, block)) {}
void SimdForward::load_queries(int64_t lane, const void* q, int64_t rows, int64_t scores) {
  if (state_.dropout.drops()) state_.row_keys[static_cast<size_t>(lane)].fill(state_.dropout, scores);
  HWY_DYNAMIC_DISPATCH(forward_load_queries)(state_, lane, q, rows);
}
void SimdForward::load_keys(const void* k, const void* v, int64_t count) {
  HWY_DYNAMIC_DISPATCH(forward_load_keys)(state_, k, v, count);
}
void SimdForward::step(int64_t lane, const StripStep& step) { HWY_DYNAMIC_DISPATCH(forward_step)(state_, lane, step); }
void SimdForward::store(int64_t lane, void* o, float* lse, int64_t rows) {
  HWY_DYNAMIC_DISPATCH(forward_store)(state_, lane, o, lse, rows);
}

}  // namespace headroom
#endif
