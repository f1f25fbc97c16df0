#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/fake_quantize/cpu_simd.cpp"
#include <algorithm>

#include "base/quantization_grid.h"
#include "hwy/foreach_target.h"
#include "ops/fake_quantize/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Of x[0, count) and 0: the smallest and the largest value; `fault` is 0, or NaN if a value is not finite.
struct Extremes {
  float least = 0;
  float most = 0;
  float fault = 0;
};

template <typename T>
Extremes extremes_of(const T* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto least = hn::Zero(d), most = hn::Zero(d), fault = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = load(d, x + i);
    least = hn::Min(least, v), most = hn::Max(most, v), fault = hn::Add(fault, hn::Sub(v, v));
  }
  Extremes all{hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most)),
               hn::GetLane(hn::SumOfLanes(d, fault))};
  for (; i < count; ++i) {
    const auto v = static_cast<float>(x[i]);
    all.least = std::min(all.least, v), all.most = std::max(all.most, v), all.fault += v - v;
  }
  return all;
}

template <typename T>
float scale_of_group(const T* w, int bits, int64_t count) {
  const Extremes x = extremes_of(w, count);
  return weight_scale(std::max(x.most, -x.least), bits) + x.fault;
}

template <typename T, typename Y>
void round_to_grid(const GroupedWeight& weight, Y* y, int64_t begin, int64_t end) {
  const CodeRange range = code_range(weight.bits);
  for (int64_t g = begin; g < end; ++g) {
    const T* const w = static_cast<const T*>(weight.values) + g * weight.group;
    Y* const to = y + g * weight.group;
    const float scale = scale_of_group(w, weight.bits, weight.group), inverse = 1 / scale;
    for_lanes(0, weight.group, [&](auto d, int64_t i) HWY_ATTR {
      const auto steps = hn::Round(hn::Mul(load(d, w + i), hn::Set(d, inverse)));
      const auto code = hn::Min(hn::Max(hn::Set(d, range.low), steps), hn::Set(d, range.high));
      store(d, hn::Mul(code, hn::Set(d, scale)), to + i);
    });
  }
}

template <typename T>
void mask_gradient(const GroupedWeight& weight, float* gradient, int64_t begin, int64_t end) {
  const CodeRange range = code_range(weight.bits);
  for (int64_t g = begin; g < end; ++g) {
    const T* const w = static_cast<const T*>(weight.values) + g * weight.group;
    float* const to = gradient + g * weight.group;
    const float inverse = 1 / scale_of_group(w, weight.bits, weight.group);
    for_lanes(0, weight.group, [&](auto d, int64_t i) HWY_ATTR {
      const auto steps = hn::Round(hn::Mul(load(d, w + i), hn::Set(d, inverse)));
      const auto passes = hn::And(hn::Gt(steps, hn::Set(d, range.low)), hn::Lt(steps, hn::Set(d, range.high)));
      store(d, hn::IfThenElseZero(passes, load(d, to + i)), to + i);
    });
  }
}

template <class D>
HWY_INLINE hn::Vec<D> load_codes(D d, const int8_t* from) {
  const hn::Rebind<int8_t, D> narrow;
  const hn::Rebind<int32_t, D> wide;
  return hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, from)));
}

template <typename T>
void to_codes(const T* x, const TokenCodes& to, int64_t begin, int64_t end) {
  const CodeRange range = code_range(8);
  for (int64_t row = begin; row < end; ++row) {
    const T* const from = x + row * to.features;
    int8_t* const codes = to.codes + row * to.features;
    const Extremes extremes = extremes_of(from, to.features);
    const TokenGrid grid = token_grid(extremes.least, extremes.most);
    const float inverse = 1 / grid.scale;
    for_lanes(0, to.features, [&](auto d, int64_t i) HWY_ATTR {
      const hn::Rebind<int8_t, decltype(d)> narrow;
      const hn::Rebind<int32_t, decltype(d)> wide;
      const auto steps = hn::Add(hn::Round(hn::Mul(load(d, from + i), hn::Set(d, inverse))), hn::Set(d, grid.zero));
      const auto code = hn::Min(hn::Max(hn::Set(d, range.low), steps), hn::Set(d, range.high));
      hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(wide, code)), narrow, codes + i);
    });
    to.grid[2 * row] = grid.scale + extremes.fault, to.grid[2 * row + 1] = grid.zero;
  }
}

template <typename T>
void from_codes(const TokenCodes& from, T* y, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float scale = from.grid[2 * row], zero = from.grid[2 * row + 1];
    const int8_t* const codes = from.codes + row * from.features;
    T* const to = y + row * from.features;
    for_lanes(0, from.features, [&](auto d, int64_t i) HWY_ATTR {
      store(d, hn::Mul(hn::Sub(load_codes(d, codes + i), hn::Set(d, zero)), hn::Set(d, scale)), to + i);
    });
  }
}

template <typename T, typename Y>
void mask(const T* dy, const int8_t* codes, Y* dx, int64_t begin, int64_t end) {
  const CodeRange range = code_range(8);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto code = load_codes(d, codes + i);
    const auto passes = hn::And(hn::Gt(code, hn::Set(d, range.low)), hn::Lt(code, hn::Set(d, range.high)));
    store(d, hn::IfThenElseZero(passes, load(d, dy + i)), dx + i);
  });
}

void round_typed(const GroupedWeight& weight, void* y, DType y_dtype, int64_t begin, int64_t end) {
  with_floats(weight.dtype, y_dtype,
              [&](auto t, auto u) { round_to_grid<decltype(t)>(weight, static_cast<decltype(u)*>(y), begin, end); });
}

void mask_typed(const GroupedWeight& weight, float* gradient, int64_t begin, int64_t end) {
  with_float(weight.dtype, [&](auto t) { mask_gradient<decltype(t)>(weight, gradient, begin, end); });
}

void quantize_typed(const void* x, DType dtype, const TokenCodes& to, int64_t begin, int64_t end) {
  with_float(dtype, [&](auto t) { to_codes(static_cast<const decltype(t)*>(x), to, begin, end); });
}

void dequantize_typed(const TokenCodes& from, void* y, DType dtype, int64_t begin, int64_t end) {
  with_float(dtype, [&](auto t) { from_codes(from, static_cast<decltype(t)*>(y), begin, end); });
}

void codes_typed(const void* dy, DType dy_dtype, const int8_t* codes, void* dx, DType dx_dtype, int64_t begin,
                 int64_t end) {
  with_floats(dy_dtype, dx_dtype, [&](auto t, auto u) {
    mask(static_cast<const decltype(t)*>(dy), codes, static_cast<decltype(u)*>(dx), begin, end);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(round_typed);
HWY_EXPORT(mask_typed);
HWY_EXPORT(quantize_typed);
HWY_EXPORT(dequantize_typed);
HWY_EXPORT(codes_typed);

void round_groups(const GroupedWeight& weight, void* y, DType y_dtype, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(round_typed)(weight, y, y_dtype, begin, end);
}

void mask_groups(const GroupedWeight& weight, float* gradient, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(mask_typed)(weight, gradient, begin, end);
}

void quantize_rows(const void* x, DType dtype, const TokenCodes& to, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(quantize_typed)(x, dtype, to, begin, end);
}

void dequantize_rows(const TokenCodes& from, void* y, DType dtype, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(dequantize_typed)(from, y, dtype, begin, end);
}

void mask_codes(const void* dy, DType dy_dtype, const int8_t* codes, void* dx, DType dx_dtype, int64_t begin,
                int64_t end) {
  HWY_DYNAMIC_DISPATCH(codes_typed)(dy, dy_dtype, codes, dx, dx_dtype, begin, end);
}

}  // namespace headroom
#endif
