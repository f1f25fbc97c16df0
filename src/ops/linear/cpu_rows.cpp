// Few rows of x times a weight that is read once: dot products with the rows of w [outs, ins], or multiples of the rows
// of w [ins, outs].
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include <algorithm>

#include "base/bfloat16.h"
#include "base/threads.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/linear/cpu_rows.h"
#include "ops/linear/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bfloat16* from) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

// What one call works on.
template <typename T, typename R>
struct Rows {
  const T* x = nullptr;
  const T* w = nullptr;
  const float* bias = nullptr;
  const R* residual = nullptr;
  R* y = nullptr;
  LinearShape shape;

  HWY_INLINE void put(int64_t row, int64_t out, float sum) const {
    const int64_t at = row * shape.outs + out;
    if (bias) sum += bias[out];
    if (residual) sum += static_cast<float>(residual[at]);
    y[at] = static_cast<R>(sum);
  }
};

// y[first .. first + count, out] for count rows of x and the kStreams rows of w that lie `stride` apart.
template <int kStreams, int count, typename T, typename R>
HWY_INLINE void dot_rows(const Rows<T, R>& rows, int64_t first, int64_t out, int64_t stride) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t ins = rows.shape.ins;
  const T* w = rows.w + out * ins;
  const T* x = rows.x + first * ins;
  const int64_t step = stride * ins;
  hn::Vec<decltype(d)> even[kStreams][count], odd[kStreams][count];
  for (int s = 0; s < kStreams; ++s)
    for (int r = 0; r < count; ++r) even[s][r] = odd[s][r] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= ins; i += 2 * lanes)
    for (int s = 0; s < kStreams; ++s) {
      if (kStreams > 1) hwy::Prefetch(w + s * step + i + 512);
      const auto left = load(d, w + s * step + i), right = load(d, w + s * step + i + lanes);
      for (int r = 0; r < count; ++r) {
        even[s][r] = hn::MulAdd(left, load(d, x + r * ins + i), even[s][r]);
        odd[s][r] = hn::MulAdd(right, load(d, x + r * ins + i + lanes), odd[s][r]);
      }
    }
  for (int s = 0; s < kStreams; ++s)
    for (int r = 0; r < count; ++r) {
      float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[s][r], odd[s][r])));
      for (int64_t k = i; k < ins; ++k) sum += static_cast<float>(w[s * step + k]) * static_cast<float>(x[r * ins + k]);
      rows.put(first + r, out + s * stride, sum);
    }
}

// Every row of x, kTogether at a time, with the rows of w in kStreams places, each read from its begin to its end: one
// stream alone gets little more than half of the memory's bandwidth. The sums stay in registers.
template <int kStreams, int kTogether, typename T, typename R>
void dot_streams(const Rows<T, R>& rows, int64_t begin, int64_t end) {
  const int64_t each = (end - begin) / kStreams;
  for (int64_t out = begin; out < begin + each; ++out) {
    int64_t row = 0;
    for (; row + kTogether <= rows.shape.rows; row += kTogether) dot_rows<kStreams, kTogether>(rows, row, out, each);
    for (; row < rows.shape.rows; ++row) dot_rows<kStreams, 1>(rows, row, out, each);
  }
  for (int64_t out = begin + kStreams * each; out < end; ++out)
    for (int64_t row = 0; row < rows.shape.rows; ++row) dot_rows<1, 1>(rows, row, out, 0);
}

template <typename T, typename R>
void dot_all(const Rows<T, R>& rows, int64_t begin, int64_t end) {
  if (rows.shape.rows == 1)
    dot_streams<8, 1>(rows, begin, end);
  else
    dot_streams<4, 2>(rows, begin, end);
}

// Columns of w [ins, outs] in blocks whose sums stay in the first-level cache.
template <typename T, typename R>
void combine_all(const Rows<T, R>& rows, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 256;
  constexpr int64_t kRows = 8;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const LinearShape& shape = rows.shape;
  for (int64_t col = begin; col < end; col += kBlock) {
    const int64_t width = std::min(kBlock, end - col);
    HWY_ALIGN float sums[kRows * kBlock] = {};
    for (int64_t k = 0; k < shape.ins; ++k)
      for (int64_t row = 0; row < shape.rows; ++row) {
        const float x = static_cast<float>(rows.x[row * shape.ins + k]);
        const T* w = rows.w + k * shape.outs + col;
        float* to = sums + row * kBlock;
        int64_t i = 0;
        for (; i + lanes <= width; i += lanes)
          hn::Store(hn::MulAdd(hn::Set(d, x), load(d, w + i), hn::Load(d, to + i)), d, to + i);
        for (; i < width; ++i) to[i] += x * static_cast<float>(w[i]);
      }
    for (int64_t row = 0; row < shape.rows; ++row)
      for (int64_t i = 0; i < width; ++i) rows.put(row, col + i, sums[row * kBlock + i]);
  }
}

template <typename T, typename R>
void run(const KernelCall& call, const LinearShape& shape, size_t bias, size_t residual) {
  const Rows<T, R> rows{call.inputs[0].as<T>(),
                        call.inputs[1].as<T>(),
                        bias ? call.inputs[bias].as<float>() : nullptr,
                        residual ? call.inputs[residual].as<R>() : nullptr,
                        call.outputs[0].as<R>(),
                        shape};
  parallel_for(shape.outs, 64, [&](int64_t begin, int64_t end, int) {
    if (shape.out_in)
      dot_all(rows, begin, end);
    else
      combine_all(rows, begin, end);
  });
}

void run_rows(const KernelCall& call, const LinearShape& shape, size_t bias, size_t residual) {
  if (call.inputs[0].dtype == DType::f32)
    run<float, float>(call, shape, bias, residual);
  else if (call.outputs[0].dtype == DType::f32)
    run<bfloat16, float>(call, shape, bias, residual);
  else
    run<bfloat16, bfloat16>(call, shape, bias, residual);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(run_rows);

KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  if (facts.isa < 2) return {nullptr, "the machine has no AVX2"};
  const LinearShape shape = linear_shape(spec.inputs[0], spec.inputs[1], spec.attrs);
  if (shape.rows > 8) return {nullptr, "more than eight rows"};
  const LinearOperands inputs = linear_operands(spec.attrs);
  if (inputs.low_rank != 0) return {nullptr, "a low-rank product is added"};
  const size_t bias = inputs.bias, residual = inputs.last;
  return {kernel_of([shape, bias, residual](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(run_rows)(call, shape, bias, residual);
          }),
          {}};
}

}  // namespace headroom
#endif
