#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cast/cpu_simd.cpp"
#include <cstddef>
#include <cstring>

#include "base/threads.h"
#include "hwy/foreach_target.h"
#include "ops/cast/convert.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename From, typename To>
void convert_all(const From* from, To* to, int64_t count) {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR { store(d, load(d, from + i), to + i); });
}

void narrow(const float* from, void* to, DType dtype, int64_t count) {
  with_narrow(dtype, [&](auto type) { convert_all(from, static_cast<decltype(type)*>(to), count); });
}

void widen(const void* from, DType dtype, float* to, int64_t count) {
  with_narrow(dtype, [&](auto type) { convert_all(static_cast<const decltype(type)*>(from), to, count); });
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
    HWY_DYNAMIC_DISPATCH(narrow)(static_cast<const float*>(from), to, to_dtype, count);
  else
    HWY_DYNAMIC_DISPATCH(widen)(from, from_dtype, static_cast<float*>(to), count);
}

void convert_in_parallel(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  const int64_t from_bytes = dtype_bytes(from_dtype), to_bytes = dtype_bytes(to_dtype);
  parallel_for(count, 4096, [&](int64_t begin, int64_t end, int) {
    convert_floats(static_cast<const std::byte*>(from) + begin * from_bytes, from_dtype,
                   static_cast<std::byte*>(to) + begin * to_bytes, to_dtype, end - begin);
  });
}

}  // namespace headroom
#endif
