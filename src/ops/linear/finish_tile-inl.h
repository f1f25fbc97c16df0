// The end of a tile of dot products. Included once per target.
#if defined(HEADROOM_OPS_LINEAR_FINISH_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_LINEAR_FINISH_TILE_INL_H_
#undef HEADROOM_OPS_LINEAR_FINISH_TILE_INL_H_
#else
#define HEADROOM_OPS_LINEAR_FINISH_TILE_INL_H_
#endif

#include "ops/linear/row_products.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

// Writes columns out, out + 1, ... of a row, as many as d has lanes.
template <typename R, class D>
HWY_INLINE void finish_columns(D d, const RowProduct& call, int64_t row, int64_t out, const float* sums) {
  const int64_t at = row * call.outs + out;
  auto sum = hn::LoadU(d, sums);
  if (call.bias) sum = hn::Add(sum, hn::LoadU(d, call.bias + out));
  if (call.residual) sum = hn::Add(sum, load(d, static_cast<const R*>(call.residual) + at));
  store(d, sum, static_cast<R*>(call.y) + at);
}

// Writes the sums [rows][outs] of a tile to y.
template <typename R>
inline void finish_tile(const RowProduct& call, int64_t row, int64_t rows, int64_t out, int64_t outs,
                        const float* sums) {
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(four));
  const int64_t whole = outs / lanes * lanes;
  for (int64_t i = 0; i < rows; ++i, sums += outs) {
    int64_t j = 0;
    for (; j < whole; j += lanes) finish_columns<R>(four, call, row + i, out + j, sums + j);
    for (; j < outs; ++j) finish_columns<R>(one, call, row + i, out + j, sums + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
