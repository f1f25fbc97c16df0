// Gradient of attention in fp32 arithmetic. Scores and their gradient are kept transposed, [keys][queries]: they are
// left operands for dk and dv, and right operands for dq, also kept transposed, without rearrangement.
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

// Operands of exact products. From the kv head, as left operands: the rows of k and v and the columns of k, in blocks
// of 32 keys. From the query tile, as right operands: its rows as columns (q_t, grad_o_t) and as steps of the depth (q,
// grad_o).
struct ExactOperands {
  explicit ExactOperands(const SimdGrad::State& state) {
    const GradSimdBlock& block = state.block;
    const int64_t rows = exact_bytes(32, padded_dim(state.shape.dim)), steps = exact_bytes(32, kGradColumns);
    k = {block.exact_k, rows, kExactBlock};
    v = {block.exact_v, rows, kExactBlock};
    k_t = {block.exact_k_t, kExactBlock, rows};
    q_t = {block.exact_q_t, rows, kExactBlock};
    grad_o_t = {block.exact_grad_o_t, rows, kExactBlock};
    q = {block.exact_q, steps, kExactBlock};
    grad_o = {block.exact_grad_o, steps, kExactBlock};
    p = {block.exact_p, steps, kExactBlock};
    ds = {block.exact_ds, steps, kExactBlock};
    ds_t = {block.exact_ds_t, exact_bytes(32, kGradKeys), kExactBlock};
  }
  ExactBlocks k, v, k_t, q_t, grad_o_t, q, grad_o, p, ds, ds_t;
};

// Gathers `count` rows of k and v from `tile`, followed by zeros up to `rows`.
void gather_keys(const SimdGrad::State& state, int64_t tile, int64_t count, int64_t rows) {
  const AttentionShape& shape = state.shape;
  const int64_t dim = shape.dim, width = padded_dim(dim), stride = shape.kv_heads * dim;
  const int64_t offset = tile * stride * (state.dtype == DType::f32 ? 4 : 2);
  for (const auto& [from, to] : {std::pair(state.k, state.block.k), std::pair(state.v, state.block.v)})
    gather_rows(static_cast<const std::byte*>(from) + offset, state.dtype, stride, count, rows, dim, to, width);
}

void grad_pack_keys(SimdGrad::State& state) {
  const GradSimdBlock& block = state.block;
  const ExactOperands exact(state);
  const int64_t keys = state.shape.keys, width = padded_dim(state.shape.dim);
  for (int64_t tile = 0; tile < keys; tile += kGradKeys) {
    gather_keys(state, tile, std::min(kGradKeys, keys - tile), kGradKeys);
    pack_exact_left({block.k, width, kGradKeys, width}, exact.k.from(tile / 32, 0));
    pack_exact_left({block.v, width, kGradKeys, width}, exact.v.from(tile / 32, 0));
    pack_exact_left_turned({block.k, width, kGradKeys, width}, exact.k_t.from(0, tile / 32));
  }
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
  std::fill_n(block.dq_t, width * kGradColumns, 0.0f);
  if (!block.exact_k) {
    transpose(block.q, width, kGradColumns, width, block.q_t, kGradColumns);
    transpose(block.grad_o, width, kGradColumns, width, block.grad_o_t, kGradColumns);
    return;
  }
  const ExactOperands exact(state);
  const ExactSource q{block.q, width, kGradColumns, width}, grad_o{block.grad_o, width, kGradColumns, width};
  pack_exact_right_turned(q, exact.q_t);
  pack_exact_right_turned(grad_o, exact.grad_o_t);
  pack_exact_right(q, exact.q);
  pack_exact_right(grad_o, exact.grad_o);
}

// How the product of a query and a key becomes a score in the base-2 domain: scale s, or cap tanh(inner s).
struct ScoreRule {
  float scale;
  float cap;  // in the base-2 domain
  float inner;

  explicit ScoreRule(const AttentionShape& shape)
      : scale(static_cast<float>(shape.scale * std::numbers::log2e)),
        cap(static_cast<float>(shape.softcap * std::numbers::log2e)),
        inner(shape.softcap > 0 ? static_cast<float>(shape.scale / shape.softcap) : 0.0f) {}
};

// p = exp(score - lse), ds = p (dp - rowsum) times the slope of the cap; they replace s and dp in place. With dropout,
// dropped entries of dp are 0 and the kept ones are scaled; p is dropped only after ds has used it.
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

// The products of a step in vector code, for `rows` keys of the tile from `from`. block.k and block.v hold the whole
// tile.
class VectorProducts {
 public:
  static constexpr int64_t kRows = 1;  // the number of keys of a product is a multiple of this

  explicit VectorProducts(const SimdGrad::State& state)
      : block_(state.block), dim_(state.shape.dim), width_(padded_dim(state.shape.dim)) {}

  // p = k q^T and ds = v grad_o^T for a strip.
  HWY_INLINE void scores(int64_t strip, int64_t from, int64_t rows) const {
    const int64_t first = strip * kStrip, at = from * kGradColumns + first;
    multiply({block_.k + from * width_, width_, 1}, block_.q_t + first, kGradColumns, block_.p + at, kGradColumns, rows,
             kStrip, dim_, false);
    multiply({block_.v + from * width_, width_, 1}, block_.grad_o_t + first, kGradColumns, block_.ds + at, kGradColumns,
             rows, kStrip, dim_, false);
  }
  // dq^T += k^T ds for a strip.
  HWY_INLINE void add_to_queries(int64_t strip, int64_t from, int64_t rows) const {
    const int64_t first = strip * kStrip;
    multiply({block_.k + from * width_, 1, width_}, block_.ds + from * kGradColumns + first, kGradColumns,
             block_.dq_t + first, kGradColumns, dim_, kStrip, rows, true);
  }
  // dv += p grad_o and dk += ds q.
  HWY_INLINE void add_to_keys(int64_t from, int64_t rows, float* dk, float* dv) const {
    multiply({block_.p + from * kGradColumns, kGradColumns, 1}, block_.grad_o, width_, dv, width_, rows, width_,
             kGradColumns, true);
    multiply({block_.ds + from * kGradColumns, kGradColumns, 1}, block_.q, width_, dk, width_, rows, width_,
             kGradColumns, true);
  }

 private:
  const GradSimdBlock& block_;
  int64_t dim_, width_;
};

// The same on AMX tiles; `tile` is the key of row 0.
class ExactProducts {
 public:
  static constexpr int64_t kRows = 32;

  ExactProducts(const SimdGrad::State& state, int64_t tile)
      : block_(state.block), exact_(state), tile_(tile), width_(padded_dim(state.shape.dim)) {}

  HWY_INLINE void scores(int64_t strip, int64_t from, int64_t rows) const {
    const int64_t at = from * kGradColumns + strip * kStrip, step = (tile_ + from) / 32;
    multiply_exact(
        {exact_.k.from(step, 0), exact_.q_t.from(strip, 0), block_.p + at, kGradColumns, rows, kStrip, width_, false});
    multiply_exact({exact_.v.from(step, 0), exact_.grad_o_t.from(strip, 0), block_.ds + at, kGradColumns, rows, kStrip,
                    width_, false});
  }
  HWY_INLINE void add_to_queries(int64_t strip, int64_t from, int64_t rows) const {
    const int64_t first = strip * kStrip;
    pack_exact_right({block_.ds + from * kGradColumns + first, kGradColumns, rows, kStrip}, exact_.ds_t);
    multiply_exact({exact_.k_t.from(0, (tile_ + from) / 32), exact_.ds_t, block_.dq_t + first, kGradColumns, width_,
                    kStrip, rows, true});
  }
  HWY_INLINE void add_to_keys(int64_t from, int64_t rows, float* dk, float* dv) const {
    pack_exact_left({block_.p + from * kGradColumns, kGradColumns, rows, kGradColumns}, exact_.p);
    multiply_exact({exact_.p, exact_.grad_o, dv, width_, rows, width_, kGradColumns, true});
    pack_exact_left({block_.ds + from * kGradColumns, kGradColumns, rows, kGradColumns}, exact_.ds);
    multiply_exact({exact_.ds, exact_.q, dk, width_, rows, width_, kGradColumns, true});
  }

 private:
  const GradSimdBlock& block_;
  ExactOperands exact_;
  int64_t tile_, width_;
};

// Keys [begin, end) of the tile are those that at least one strip sees.
template <class Products>
HWY_INLINE void run_step(const SimdGrad::State& state, const Products& products, int64_t tile, int64_t begin,
                         int64_t end, std::span<const StripStep> steps) {
  const GradSimdBlock& block = state.block;
  const ScoreRule rule(state.shape);
  const int64_t all = align_up(end, Products::kRows), width = padded_dim(state.shape.dim);
  for (size_t strip = 0; strip < steps.size(); ++strip) {
    const StripStep& step = steps[strip];
    const int64_t index = static_cast<int64_t>(strip);
    const int64_t from = std::min<int64_t>(step.begin, end), rows = std::max<int64_t>(0, step.end - from);
    const int64_t whole = align_up(rows, Products::kRows);
    if (rows > 0) {
      products.scores(index, from, whole);
      differentiate(state, step, index, rule);
    }
    for (float* scores : {block.p + index * kStrip, block.ds + index * kStrip}) {
      clear_strip(scores, begin, from);
      clear_strip(scores, from + rows, all);
    }
    if (rows > 0) products.add_to_queries(index, from, whole);
  }
  const int64_t to = (tile + begin) * width;
  products.add_to_keys(begin, all - begin, block.dk + to, block.dv + to);
}

void grad_step(SimdGrad::State& state, int64_t tile, int64_t count, std::span<const StripStep> steps) {
  int64_t begin = kGradKeys, end = 0;
  for (const StripStep& step : steps) {
    if (step.begin >= step.end) continue;
    begin = std::min<int64_t>(begin, step.begin);
    end = std::max<int64_t>(end, step.end);
  }
  if (begin >= end) return;
  if (state.block.exact_k) return run_step(state, ExactProducts(state, tile), tile, begin, end, steps);
  gather_keys(state, tile, count, count);
  run_step(state, VectorProducts(state), tile, begin, end, steps);
}

void grad_store_queries(SimdGrad::State& state, void* dq, int64_t rows) {
  const AttentionShape& shape = state.shape;
  const int64_t width = padded_dim(shape.dim), element = state.dtype == DType::f32 ? 4 : 2;
  transpose(state.block.dq_t, kGradColumns, width, kGradColumns, state.block.k, width);
  for (int64_t i = 0; i < rows; ++i)
    narrow(state.block.k + i * width, static_cast<std::byte*>(dq) + i * shape.heads * shape.dim * element, state.dtype,
           shape.dim, static_cast<float>(shape.scale));
}

// Adds the rows of the other parts to part 0's.
HWY_INLINE void add_rows(float* HWY_RESTRICT sum, const float* HWY_RESTRICT other, int64_t count) {
  const VectorTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, other + i)), d, sum + i);
}

// Sums row `key` of `sums` over the parts, scales it and stores it at `to`.
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

HWY_EXPORT(grad_pack_keys);
HWY_EXPORT(grad_load_queries);
HWY_EXPORT(grad_step);
HWY_EXPORT(grad_store_queries);
HWY_EXPORT(grad_join_row);

SimdGrad::SimdGrad(const GradCall& call, const GradSimdBlock& block)
    : state_{call.shape, call.dtype, block, nullptr, nullptr, call.dropout, {}} {}
SimdGrad::SimdGrad(const GradCall& call, std::byte* block)
    : SimdGrad(call, carve_block(grad_simd_block, call.shape, block)) {}
void SimdGrad::begin(const void* k, const void* v) {
  const int64_t sums = grad_sum_rows(state_.shape) * padded_dim(state_.shape.dim);
  std::fill_n(state_.block.dk, sums, 0.0f);
  std::fill_n(state_.block.dv, sums, 0.0f);
  state_.k = k;
  state_.v = v;
  if (state_.block.exact_k) HWY_DYNAMIC_DISPATCH(grad_pack_keys)(state_);
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
