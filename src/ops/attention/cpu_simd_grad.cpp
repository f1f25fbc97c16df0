// Gradient of attention in fp32 arithmetic. Scores and their gradient are kept transposed, [keys][queries]: dk and dv
// then take them as left operands and dq, kept transposed too, as right operand, all without rearrangement.
#include <numbers>

#include "ops/attention/grad_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#define HWY_TARGET_INCLUDE "ops/attention/cpu_simd_grad.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/attention/simd_tile-inl.h"

#include "ops/attention/score_dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

constexpr int64_t kGradColumns = SimdGrad::kColumns;

HWY_INLINE float dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t count) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += lanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void grad_load_queries(SimdGrad::State& state, const QueryTile& tile) {
  const AttentionShape& shape = state.shape;
  const GradSimdBlock& block = state.block;
  const int64_t dim = shape.dim, width = padded_dim(dim), stride = shape.heads * dim;
  gather_rows(tile.q, state.dtype, stride, tile.rows, kGradColumns, dim, block.q, width);
  gather_rows(tile.grad_o, state.dtype, stride, tile.rows, kGradColumns, dim, block.grad_o, width);
  gather_rows(tile.o, state.dtype, stride, tile.rows, kGradColumns, dim, block.k, width);
  for (int64_t i = 0; i < kGradColumns; ++i) {
    block.rowsum[i] = dot(block.k + i * width, block.grad_o + i * width, width);
    block.lse[i] = i < tile.rows ? tile.lse[i] * std::numbers::log2e_v<float> : 0.0f;
  }
  transpose(block.q, width, kGradColumns, width, block.q_t, kGradColumns);
  transpose(block.grad_o, width, kGradColumns, width, block.grad_o_t, kGradColumns);
  std::fill_n(block.dq_t, width * kGradColumns, 0.0f);
}

// How a product of a query and a key becomes a score in the base-2 domain: scale s, or cap tanh(inner s).
struct ScoreRule {
  float scale;
  float cap;  // in the base-2 domain
  float inner;

  explicit ScoreRule(const AttentionShape& shape)
      : scale(static_cast<float>(shape.scale * std::numbers::log2e)),
        cap(static_cast<float>(shape.softcap * std::numbers::log2e)),
        inner(shape.softcap > 0 ? static_cast<float>(shape.scale / shape.softcap) : 0.0f) {}
};

// p = exp(score - lse), ds = p (dp - rowsum) times the slope of the cap: s and dp are replaced in place. Where scores
// are dropped, so are p behind its use in ds, and dp, of which what is kept is scaled.
template <bool kCapped, bool kDropped>
HWY_INLINE void grad_scores(const SimdGrad::State& state, const StripStep& step, int64_t strip, const ScoreRule& rule) {
  const GradSimdBlock& block = state.block;
  const VectorTag d;
  const int32_t lanes = static_cast<int32_t>(hn::Lanes(d));
  const ColumnMask mask{step.visible_begin, step.visible_end, step.segmented ? step.starts.data() : nullptr};
  const Vector scales = hn::Set(d, kCapped ? rule.cap : rule.scale), inner = hn::Set(d, rule.inner);
  for (int32_t column = 0; column < kStrip; column += lanes) {
    const int64_t first = strip * kStrip + column;
    const Vector lse = hn::LoadU(d, block.lse + first), rowsum = hn::LoadU(d, block.rowsum + first);
    DroppedColumns dropped(state.row_keys.low.data() + first, state.row_keys.high.data() + first,
                           state.dropout.rate.below);
    for (int32_t row = step.begin; row < step.end; ++row) {
      float* p_at = block.p + row * kGradColumns + first;
      float* ds_at = block.ds + row * kGradColumns + first;
      Vector s = hn::LoadU(d, p_at);
      if constexpr (kCapped) s = tanh_of(d, hn::Mul(s, inner));
      Vector p = exp2_of(hn::MulSub(s, scales, lse));
      if (step.masked) p = mask.apply(p, hn::Zero(d), row, column);
      Vector dp = hn::LoadU(d, ds_at), weight = p;
      if constexpr (kDropped) {
        weight = dropped.apply(p, step.tile + row);
        dp = dropped.again(hn::Mul(dp, hn::Set(d, state.dropout.rate.scale)));
      }
      hn::StoreU(weight, d, p_at);
      Vector ds = hn::Mul(p, hn::Sub(dp, rowsum));
      if constexpr (kCapped) ds = hn::Mul(ds, hn::NegMulAdd(s, s, hn::Set(d, 1.0f)));
      hn::StoreU(ds, d, ds_at);
    }
  }
}

HWY_INLINE void differentiate(const SimdGrad::State& state, const StripStep& step, int64_t strip,
                              const ScoreRule& rule) {
  const bool capped = state.shape.softcap > 0;
  if (state.dropout.drops())
    return capped ? grad_scores<true, true>(state, step, strip, rule)
                  : grad_scores<false, true>(state, step, strip, rule);
  capped ? grad_scores<true, false>(state, step, strip, rule) : grad_scores<false, false>(state, step, strip, rule);
}

HWY_INLINE void clear_strip(float* from, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) std::fill_n(from + row * kGradColumns, kStrip, 0.0f);
}

void grad_step(SimdGrad::State& state, int64_t tile, int64_t count, std::span<const StripStep> steps) {
  const AttentionShape& shape = state.shape;
  const GradSimdBlock& block = state.block;
  const int64_t dim = shape.dim, width = padded_dim(dim), stride = shape.kv_heads * dim;
  const int64_t element = state.dtype == DType::f32 ? 4 : 2, offset = tile * stride * element;
  gather_rows(static_cast<const std::byte*>(state.k) + offset, state.dtype, stride, count, count, dim, block.k, width);
  gather_rows(static_cast<const std::byte*>(state.v) + offset, state.dtype, stride, count, count, dim, block.v, width);
  int64_t begin = kGradKeys, end = 0;
  for (const StripStep& step : steps) {
    if (step.begin >= step.end) continue;
    begin = std::min<int64_t>(begin, step.begin);
    end = std::max<int64_t>(end, step.end);
  }
  if (begin >= end) return;
  const ScoreRule rule(shape);
  for (size_t strip = 0; strip < steps.size(); ++strip) {
    const StripStep& step = steps[strip];
    const int64_t first = static_cast<int64_t>(strip) * kStrip;
    const int64_t from = std::min<int64_t>(step.begin, end), rows = std::max<int64_t>(0, step.end - from);
    multiply({block.k + from * width, width, 1}, block.q_t + first, kGradColumns, block.p + from * kGradColumns + first,
             kGradColumns, rows, kStrip, dim, false);
    multiply({block.v + from * width, width, 1}, block.grad_o_t + first, kGradColumns,
             block.ds + from * kGradColumns + first, kGradColumns, rows, kStrip, dim, false);
    if (rows > 0) differentiate(state, step, static_cast<int64_t>(strip), rule);
    for (float* scores : {block.p + first, block.ds + first}) {
      clear_strip(scores, begin, from);
      clear_strip(scores, from + rows, end);
    }
    multiply({block.k + from * width, 1, width}, block.ds + from * kGradColumns + first, kGradColumns,
             block.dq_t + first, kGradColumns, dim, kStrip, rows, true);
  }
  const int64_t rows = end - begin;
  multiply({block.p + begin * kGradColumns, kGradColumns, 1}, block.grad_o, width, block.dv + (tile + begin) * width,
           width, rows, width, kGradColumns, true);
  multiply({block.ds + begin * kGradColumns, kGradColumns, 1}, block.q, width, block.dk + (tile + begin) * width, width,
           rows, width, kGradColumns, true);
}

void grad_store_queries(SimdGrad::State& state, void* dq, int64_t rows) {
  const AttentionShape& shape = state.shape;
  const int64_t width = padded_dim(shape.dim), element = state.dtype == DType::f32 ? 4 : 2;
  transpose(state.block.dq_t, kGradColumns, width, kGradColumns, state.block.k, width);
  for (int64_t i = 0; i < rows; ++i)
    narrow(state.block.k + i * width, static_cast<std::byte*>(dq) + i * shape.heads * shape.dim * element, state.dtype,
           shape.dim, static_cast<float>(shape.scale));
}

// Adds the other parts into part 0's row.
HWY_INLINE void add_rows(float* HWY_RESTRICT sum, const float* HWY_RESTRICT other, int64_t count) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, other + i)), d, sum + i);
}

// Row `key` of `sums` over the parts, scaled and stored at `to`.
void grad_join_row(float* sums, int64_t part_stride, int64_t parts, int64_t width, void* to, DType dtype, int64_t dim,
                   float factor) {
  for (int64_t part = 1; part < parts; ++part) add_rows(sums, sums + part * part_stride, width);
  narrow(sums, to, dtype, dim, factor);
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(grad_load_queries);
HWY_EXPORT(grad_step);
HWY_EXPORT(grad_store_queries);
HWY_EXPORT(grad_join_row);

SimdGrad::SimdGrad(const GradCall& call, std::byte* block) {
  Carver carver(block);
  state_ = {call.shape, call.dtype, grad_simd_block(carver, call.shape), nullptr, nullptr, call.dropout, {}};
}
void SimdGrad::begin(const void* k, const void* v) {
  const int64_t sums = grad_sum_rows(state_.shape) * padded_dim(state_.shape.dim);
  std::fill_n(state_.block.dk, sums, 0.0f);
  std::fill_n(state_.block.dv, sums, 0.0f);
  state_.k = k;
  state_.v = v;
}
void SimdGrad::load_queries(const QueryTile& tile) {
  if (state_.dropout.drops()) state_.row_keys.fill(state_.dropout, tile.scores);
  HWY_DYNAMIC_DISPATCH(grad_load_queries)(state_, tile);
}
void SimdGrad::step(int64_t tile, int64_t count, std::span<const StripStep> steps) {
  HWY_DYNAMIC_DISPATCH(grad_step)(state_, tile, count, steps);
}
void SimdGrad::store_queries(void* dq, int64_t rows) { HWY_DYNAMIC_DISPATCH(grad_store_queries)(state_, dq, rows); }

void join_units(const GradCall& call, int64_t first_group, const GradWave& wave, int64_t unit_bytes) {
  const AttentionShape& shape = call.shape;
  const int64_t width = padded_dim(shape.dim), bytes = dtype_bytes(call.dtype);
  parallel_for(wave.groups * shape.keys, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t group = first_group + index / shape.keys, key = index % shape.keys;
      Carver carver(call.scratch + index / shape.keys * wave.parts * unit_bytes);
      const GradSimdBlock block = grad_simd_block(carver, shape);
      const int64_t row = group / shape.kv_heads * shape.keys + key;
      const int64_t to = (row * shape.kv_heads + group % shape.kv_heads) * shape.dim * bytes;
      const int64_t stride = unit_bytes / static_cast<int64_t>(sizeof(float));
      HWY_DYNAMIC_DISPATCH(grad_join_row)
      (block.dk + key * width, stride, wave.parts, width, static_cast<std::byte*>(call.dk) + to, call.dtype, shape.dim,
       static_cast<float>(shape.scale));
      HWY_DYNAMIC_DISPATCH(grad_join_row)
      (block.dv + key * width, stride, wave.parts, width, static_cast<std::byte*>(call.dv) + to, call.dtype, shape.dim,
       call.dropout.rate.scale);
    }
  });
}

}  // namespace headroom
#endif
