// Products in f32 arithmetic for every vector width: a 12 x 32 result in sub-tiles that fit the registers. Narrow
// operands become f32 while they are packed; f32 operands are rounded to bf16 numbers or to sums of two if
// MatmulSpec::multiply asks for it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/simd_matmul.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"
#include "ops/cpu/bf16_parts.h"
#include "ops/cpu/blocked_matmul.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// How a number is packed: as kPlanes numbers, `width` apart.
template <typename T>
struct AsIs {
  using Number = T;
  static constexpr int kPlanes = 1;
  static void store(T number, float* to, int64_t) { *to = static_cast<float>(number); }
};

template <typename T>
struct RoundedTo {
  using Number = float;
  static constexpr int kPlanes = 1;
  static void store(float number, float* to, int64_t) { *to = static_cast<float>(T(number)); }
};
using Rounded = RoundedTo<bfloat16>;

// For A: the high part, then the low one.
struct SplitA {
  using Number = float;
  static constexpr int kPlanes = 2;
  static void store(float number, float* to, int64_t width) {
    const Bf16Parts parts = bf16_parts(number);
    to[0] = parts.high;
    to[width] = parts.low;
  }
};

// For B, as add_three_products uses it: the sum of both parts, then the high one if it is finite.
struct SplitB {
  using Number = float;
  static constexpr int kPlanes = 2;
  static void store(float number, float* to, int64_t width) {
    const Bf16Parts parts = bf16_parts(number);
    to[0] = parts.high + parts.low;
    to[width] = std::isfinite(parts.high) ? parts.high : 0.0f;
  }
};

// Of a lane at a time, where a row in memory is a lane: the lines that are read and written stay in the L1 cache.
constexpr int64_t kLaneSteps = 16;

#if HWY_TARGET != HWY_SCALAR

using Four = hn::FixedTag<float, 4>;

// Whether a strip of these is packed four numbers at a time.
template <typename Source>
constexpr bool kPacksFours = false;
template <typename T>
constexpr bool kPacksFours<AsIs<T>> = true;

// Four steps of four lanes, `stride` numbers apart, as four lanes of four steps.
template <typename T>
HWY_INLINE void transpose_fours(const T* from, int64_t stride, float* to, int64_t width) {
  const Four d;
  const hn::Repartition<double, Four> pairs;
  const auto a = load(d, from), b = load(d, from + stride), c = load(d, from + 2 * stride),
             e = load(d, from + 3 * stride);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * width);
}

// pack() of a whole strip whose rows in memory are steps.
template <typename T, int64_t width>
void pack_steps(const PackCall& call) {
  static_assert(width % 4 == 0);
  float* to = reinterpret_cast<float*>(call.to);
  const T* row = static_cast<const T*>(call.from) + call.step * call.stride + call.lane;
  for (int64_t step = 0; step < call.depth; ++step, row += call.stride, to += width) {
    HWY_UNROLL(8)
    for (int64_t lane = 0; lane < width; lane += 4) hn::StoreU(load(Four(), row + lane), Four(), to + lane);
  }
}

// pack() of a whole strip whose rows in memory are lanes.
template <typename T, int64_t width>
void pack_lanes(const PackCall& call) {
  float* to = reinterpret_cast<float*>(call.to);
  const T* from = static_cast<const T*>(call.from) + call.lane * call.stride + call.step;
  const int64_t whole = call.depth / 4 * 4;
  for (int64_t begin = 0; begin < whole; begin += kLaneSteps) {
    const int64_t end = std::min(whole, begin + kLaneSteps);
    for (int64_t lane = 0; lane < width; lane += 4)
      for (int64_t step = begin; step < end; step += 4)
        transpose_fours(from + lane * call.stride + step, call.stride, to + step * width + lane, width);
  }
  for (int64_t step = whole; step < call.depth; ++step)
    for (int64_t lane = 0; lane < width; ++lane)
      to[step * width + lane] = static_cast<float>(from[lane * call.stride + step]);
}

#endif

// Packs one strip, `width` lanes wide: the lanes of a step are contiguous, steps follow each other.
template <typename Source, int64_t width>
void pack(const PackCall& call) {
  float* to = reinterpret_cast<float*>(call.to);
  using T = typename Source::Number;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kPacksFours<Source>)
    if (call.lanes == width) return call.depth_major ? pack_steps<T, width>(call) : pack_lanes<T, width>(call);
#endif
  const T* from = static_cast<const T*>(call.from);
  constexpr int64_t kStep = Source::kPlanes * width;
  if (call.depth_major) {
    for (int64_t step = 0; step < call.depth; ++step) {
      const T* row = from + (call.step + step) * call.stride + call.lane;
      for (int64_t lane = 0; lane < call.lanes; ++lane) Source::store(row[lane], to + step * kStep + lane, width);
      for (int64_t lane = call.lanes; lane < width; ++lane) Source::store(T{}, to + step * kStep + lane, width);
    }
    return;
  }
  for (int64_t begin = 0; begin < call.depth; begin += kLaneSteps) {
    const int64_t end = std::min(call.depth, begin + kLaneSteps);
    for (int64_t lane = 0; lane < width; ++lane) {
      const T* row = from + (call.lane + lane) * call.stride + call.step;
      for (int64_t step = begin; step < end; ++step)
        Source::store(lane < call.lanes ? row[step] : T{}, to + step * kStep + lane, width);
    }
  }
}

// Packs f32 operands with `Wide`, or rounded to `call.rounds`; narrow ones as they are.
template <typename Wide, int64_t width>
void pack_any(const PackCall& call) {
  for (int64_t lane = 0; lane < call.lanes; lane += width) {
    PackCall strip = call;
    strip.lane += lane;
    strip.lanes = std::min(width, call.lanes - lane);
    strip.to += lane / width * call.strip_bytes;
    if (call.dtype != DType::f32)
      with_narrow(call.dtype, [&](auto type) { pack<AsIs<decltype(type)>, width>(strip); });
    else if (call.rounds != DType::f32)
      with_narrow(call.rounds, [&](auto type) { pack<RoundedTo<decltype(type)>, width>(strip); });
    else
      pack<Wide, width>(strip);
  }
}

// Accumulators that fit the register file: half the rows if there are 16 registers. Loops over them are unrolled by
// pragma: GCC leaves them rolled, and keeps the sums in memory at 0.4 of the speed.
constexpr int kSubRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;

using SubTile = hn::Vec<hn::CappedTag<float, 16>>[kSubRows][2];

// Adds `depth` steps of packed strips, each of kPlanes planes. Returns the end of what it read of b.
template <int kPlanes>
HWY_INLINE const float* add_steps(const float* a, const float* b, int64_t depth, SubTile& sums) {
  const hn::CappedTag<float, 16> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t step = 0; step < depth * kPlanes; ++step, a += kSimdTile.rows, b += kSimdTile.cols) {
    const auto left = hn::LoadU(d, b), right = hn::LoadU(d, b + kLanes);
    HWY_UNROLL(12)
    for (int i = 0; i < kSubRows; ++i) {
      const auto factor = hn::Set(d, a[i]);
      sums[i][0] = hn::MulAdd(factor, left, sums[i][0]);
      sums[i][1] = hn::MulAdd(factor, right, sums[i][1]);
    }
  }
  return b;
}

template <int kPlanes>
HWY_INLINE void multiply_sub_tile(const TileCall& call, int64_t row, int64_t col) {
  const hn::CappedTag<float, 16> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  SubTile sums;
  HWY_UNROLL(12)
  for (int i = 0; i < kSubRows; ++i) {
    HWY_UNROLL(2)
    for (int j = 0; j < 2; ++j)
      sums[i][j] = call.init ? hn::LoadU(d, call.init + (row + i) * call.out_stride + col + j * kLanes) : hn::Zero(d);
  }
  const float* b = reinterpret_cast<const float*>(call.b) + col;
  b = add_steps<kPlanes>(reinterpret_cast<const float*>(call.a) + row, b, call.depth, sums);
  if (call.low_rank > 0) add_steps<kPlanes>(reinterpret_cast<const float*>(call.p) + row, b, call.low_rank, sums);
  HWY_UNROLL(12)
  for (int i = 0; i < kSubRows; ++i) {
    HWY_UNROLL(2)
    for (int j = 0; j < 2; ++j) hn::StoreU(sums[i][j], d, call.out + (row + i) * call.out_stride + col + j * kLanes);
  }
}

template <typename T>
void finish(const FinishCall& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    const float* sum = call.sum + row * call.sum_stride;
    T* c = static_cast<T*>(call.c) + row * call.c_stride;
    const T* addend = static_cast<const T*>(call.addend) + (call.addend ? row * call.c_stride : 0);
    for (int64_t col = 0; col < call.cols; ++col) {
      float value = sum[col];
      if (call.bias) value += call.bias[col];
      if (call.addend) value += static_cast<float>(addend[col]);
      c[col] = static_cast<T>(value);
    }
  }
}

void finish_any(const FinishCall& call) {
  with_float(call.dtype, [&](auto type) { finish<decltype(type)>(call); });
}

template <int kPlanes>
void multiply_tiles(const TileCall& call) {
  constexpr int64_t kCols = 2 * static_cast<int64_t>(hn::MaxLanes(hn::CappedTag<float, 16>()));
  for (int64_t index = 0; index < call.tiles; ++index) {
    const TileCall tile = call.tile(index);
    for (int64_t row = 0; row < kSimdTile.rows; row += kSubRows)
      for (int64_t col = 0; col < kSimdTile.cols; col += kCols) multiply_sub_tile<kPlanes>(tile, row, col);
    if (call.finish) finish_any(call.finish->tile(index, kSimdTile.cols, tile.out));
  }
}

template <typename WideA, typename WideB>
TileKernel kernel_of(const TileTraits& traits) {
  return {
      traits, pack_any<WideA, kSimdTile.rows>, pack_any<WideB, kSimdTile.cols>, multiply_tiles<WideA::kPlanes>, nullptr,
      nullptr};
}

TileKernel simd_kernel(const MatmulSpec& spec) {
  const TileTraits& traits = simd_tile(spec.operand, spec.multiply);
  if (spec.operand == DType::f32 && spec.multiply == Multiply::bf16) return kernel_of<Rounded, Rounded>(traits);
  if (spec.operand == DType::f32 && spec.multiply == Multiply::bf16x3) return kernel_of<SplitA, SplitB>(traits);
  return kernel_of<AsIs<float>, AsIs<float>>(traits);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(simd_kernel);

TileOffer offer_simd_tiles(const MatmulSpec& spec, const DeviceFacts& facts) {
  if (!facts.capabilities.has(kAvx2)) return {{}, "the machine has no AVX2"};
  return {HWY_DYNAMIC_DISPATCH(simd_kernel)(spec), {}};
}

MatmulOffer make_simd_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (spec.multiply == Multiply::int8) return {nullptr, "the operands are multiplied as 8-bit codes"};
  const TileOffer offer = offer_simd_tiles(spec, facts);
  if (!offer.refusal.empty()) return {nullptr, offer.refusal};
  return make_blocked_matmul(spec, offer.kernel, facts, booked);
}

}  // namespace headroom
#endif
