#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rotary/cpu_simd.cpp"
#include <algorithm>
#include <cstring>

#include "hwy/foreach_target.h"
#include "ops/rotary/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void rotate(const RotaryRows& args, int64_t begin, int64_t end) {
  const int64_t half = args.turned / 2;
  const float sign = args.inverse ? -1.0f : 1.0f;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t offset = args.offsets ? args.offsets[row / args.seq] : args.offset;
    const int64_t position =
        std::clamp<int64_t>(offset + row % args.seq - (args.starts ? args.starts[row] : 0), 0, args.table_rows - 1);
    const float* const cosines = args.table + position * args.turned;
    const float* const sines = cosines + half;
    for (int64_t head = 0; head < args.heads; ++head) {
      const int64_t at = (row * args.heads + head) * args.head_dim;
      const T* const x = static_cast<const T*>(args.x) + at;
      T* const y = static_cast<T*>(args.y) + at;
      for_lanes(0, half, [&](auto d, int64_t i) HWY_ATTR {
        const auto a = load(d, x + i);
        const auto b = load(d, x + half + i);
        const auto c = load(d, cosines + i);
        const auto s = hn::Mul(load(d, sines + i), hn::Set(d, sign));
        store(d, hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), y + i);
        store(d, hn::Add(hn::Mul(b, c), hn::Mul(a, s)), y + half + i);
      });
      if (x != y && args.turned < args.head_dim)
        std::memcpy(y + args.turned, x + args.turned, static_cast<size_t>(args.head_dim - args.turned) * sizeof(T));
    }
  }
}

void rows(const RotaryRows& args, int64_t begin, int64_t end) {
  with_float(args.dtype, [&](auto type) { rotate<decltype(type)>(args, begin, end); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(rows);

void rotary_rows(const RotaryRows& args, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(rows)(args, begin, end); }

}  // namespace headroom
#endif
