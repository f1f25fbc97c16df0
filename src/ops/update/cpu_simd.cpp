#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/update/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"
#include "ops/stream/row_codes-inl.h"
#include "ops/stream/updated_weight-inl.h"
#include "ops/update/arithmetic-inl.h"
#include "ops/update/simd.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <class F, class K>
void update(const UpdateArrays& arrays, const UpdateScalars& scalars, uint64_t key, int64_t begin, int64_t end) {
  const UpdateArrays a = arrays;
  const UpdateScalars s = scalars;
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    const V g = hn::Mul(load(d, a.g + i), hn::Set(d, s.clip));
    V states[F::kStates + 1];
    for (int k = 0; k < F::kStates; ++k) states[k] = load(d, a.states[k] + i);
    const V w = F::at(UpdateLanes<decltype(d)>{d}, s.factors, load_weight(K(), d, a.weight, i), g, states);
    for (int k = 0; k < F::kStates; ++k) store(d, states[k], a.states[k] + i);
    store_weight(K(), d, w, a.weight, i, key);
  });
}

template <class F>
void weights(const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin, int64_t end) {
  for_weight(arrays.weight, scalars.key, begin, end, [&](auto kept, uint64_t key, int64_t from, int64_t to) {
    update<F, decltype(kept)>(arrays, scalars, key, from, to);
  });
}

template <class F>
void int8_weights(const UpdateArrays& arrays, const UpdateScalars& scalars, const Int8Rows& weight, float* row,
                  int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    UpdateArrays here = arrays;
    here.weight = {.wide = row};
    here.g += r * weight.columns;
    for (int k = 0; k < F::kStates; ++k) here.states[k] += r * weight.columns;
    decode_int8_row(weight, r, row);
    update<F, KeptWide>(here, scalars, 0, 0, weight.columns);
    encode_int8_row(row, weight, r, scalars.key);
  }
}

void int8_rows_range(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars,
                     const Int8Rows& weight, float* row, int64_t begin, int64_t end) {
  switch (formula) {
#define HR_RUN(number, type, ...) \
  case UpdateFormula::number:     \
    return int8_weights<type>(arrays, scalars, weight, row, begin, end);
    HR_UPDATES(HR_RUN)
#undef HR_RUN
  }
}

void range(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin,
           int64_t end) {
  switch (formula) {
#define HR_RUN(number, type, ...) \
  case UpdateFormula::number:     \
    return weights<type>(arrays, scalars, begin, end);
    HR_UPDATES(HR_RUN)
#undef HR_RUN
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);
HWY_EXPORT(int8_rows_range);

void update_range(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin,
                  int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(formula, arrays, scalars, begin, end);
}

void update_int8_rows(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars,
                      const Int8Rows& weight, float* row, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(int8_rows_range)(formula, arrays, scalars, weight, row, begin, end);
}

}  // namespace headroom
#endif
