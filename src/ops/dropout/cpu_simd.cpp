#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dropout/cpu_simd.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/dropout/simd.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// For elements whose indices have the same upper 32 bits, and so the same `key`.
template <typename T, typename Y>
void drop(const DropoutRange& args, uint64_t key, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(args.x);
  Y* const y = static_cast<Y*>(args.y);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<int32_t, decltype(d)> whole;
    const auto bits = random_lanes(d, key, static_cast<uint64_t>(args.first + i));
    const auto drawn = hn::BitCast(whole, hn::ShiftRight<1>(bits));
    const auto dropped = hn::RebindMask(d, hn::Lt(drawn, hn::Set(whole, static_cast<int32_t>(args.below))));
    store(d, hn::IfThenZeroElse(dropped, hn::Mul(load(d, x + i), hn::Set(d, args.scale))), y + i);
  });
}

void range(const DropoutRange& args, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = int64_t{1} << 32;
  while (begin < end) {
    const int64_t index = args.first + begin;
    const int64_t stop = std::min(end, begin + kBlock - index % kBlock);
    const uint64_t key = block_key(args.key, static_cast<uint64_t>(index));
    with_floats(args.dtype, args.y_dtype,
                [&](auto x, auto y) { drop<decltype(x), decltype(y)>(args, key, begin, stop); });
    begin = stop;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void dropout_range(const DropoutRange& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(args, begin, end);
}

}  // namespace headroom
#endif
