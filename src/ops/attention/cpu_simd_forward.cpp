// Forward attention in fp32 arithmetic. Scores are kept transposed, [keys][queries], so that the softmax runs down
// the vector columns and both products take their left operand straight from k and v.
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

constexpr float kHidden = -1e30f;  // a score no visible one reaches

void forward_load_queries(SimdForward::State& state, int64_t lane, const void* q, int64_t rows) {
  const AttentionShape& shape = state.shape;
  const ForwardSimdBlock& block = state.block;
  const int64_t width = padded_dim(shape.dim);
  gather_rows(q, state.q_dtype, shape.heads * shape.dim, rows, kStrip, shape.dim, block.k, width);
  transpose(block.k, width, kStrip, width, block.q + lane * width * kStrip, kStrip);
  std::fill_n(block.o + lane * width * kStrip, width * kStrip, 0.0f);
  std::fill_n(block.maximum + lane * kStrip, kStrip, kHidden);
  std::fill_n(block.sum + lane * kStrip, kStrip, 0.0f);
}

void forward_load_keys(SimdForward::State& state, const void* k, const void* v, int64_t count) {
  const AttentionShape& shape = state.shape;
  const int64_t stride = shape.kv_heads * shape.dim, width = padded_dim(shape.dim);
  gather_rows(k, state.kv_dtype, stride, count, count, shape.dim, state.block.k, width);
  gather_rows(v, state.kv_dtype, stride, count, count, shape.dim, state.block.v, width);
}

// Scores -> probabilities of one vector of columns; returns the factor of what was summed before.
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

// Drops probabilities of all columns.
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

void forward_step(SimdForward::State& state, int64_t lane, const StripStep& step) {
  const VectorTag d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  const ForwardSimdBlock& block = state.block;
  const int64_t dim = state.shape.dim, width = padded_dim(dim), rows = step.end - step.begin;
  const float* k = block.k + step.begin * width;
  const float* v = block.v + step.begin * width;
  float* scores = block.scores + step.begin * kStrip;
  float* o = block.o + lane * width * kStrip;
  multiply({k, width, 1}, block.q + lane * width * kStrip, kStrip, scores, kStrip, rows, kStrip, dim, false);
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
  multiply({v, 1, width}, scores, kStrip, o, kStrip, dim, kStrip, rows, true);
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

SimdForward::SimdForward(const ForwardCall& call, std::byte* block) {
  Carver carver(block);
  state_ = {call.shape, call.q_dtype, call.kv_dtype, forward_simd_block(carver, call.shape), call.dropout, {}};
}
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
