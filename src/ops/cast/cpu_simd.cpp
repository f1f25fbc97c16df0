#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cast/cpu_simd.cpp"
#include <cstring>

#include "hwy/foreach_target.h"
#include "ops/cast/convert.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

void narrow(const float* from, bfloat16* to, int64_t count) {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR { store(d, load(d, from + i), to + i); });
}

void widen(const bfloat16* from, float* to, int64_t count) {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR { store(d, load(d, from + i), to + i); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(narrow);
HWY_EXPORT(widen);

void convert_floats(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  if (from_dtype == to_dtype)
    std::memcpy(to, from, static_cast<size_t>(count * dtype_bytes(from_dtype)));
  else if (from_dtype == DType::f32)
    HWY_DYNAMIC_DISPATCH(narrow)(static_cast<const float*>(from), static_cast<bfloat16*>(to), count);
  else
    HWY_DYNAMIC_DISPATCH(widen)(static_cast<const bfloat16*>(from), static_cast<float*>(to), count);
}

}  // namespace headroom
#endif
