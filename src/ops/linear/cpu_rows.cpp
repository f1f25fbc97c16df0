// Few rows of x times weights that are read once: dot products with the rows of w [outs, ins], or multiples of the rows
// of w [ins, outs].
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include <algorithm>
#include <array>

#include "base/threads.h"
#include "hwy/cache_control.h"
#include "ops/linear/cpu_coded_rows.h"
#include "ops/linear/cpu_rows.h"
#include "ops/linear/scratch.h"
#include "ops/linear_group/members.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// A weight [outs, ins], or [ins, outs], and what is made of it.
template <typename T, typename R>
struct Layer {
  const T* w = nullptr;
  const float* bias = nullptr;
  const R* residual = nullptr;
  R* y = nullptr;
  int64_t outs = 0;

  HWY_INLINE void put(int64_t row, int64_t out, float sum) const {
    const int64_t at = row * outs + out;
    if (bias) sum += bias[out];
    if (residual) sum += static_cast<float>(residual[at]);
    y[at] = static_cast<R>(sum);
  }
};

// What one call works on: layers of one input, whose outs are numbered through.
template <typename T, typename R>
struct Rows {
  const T* x = nullptr;
  int64_t count = 0;
  int64_t ins = 0;
  std::array<Layer<T, R>, kGroupMost> layers;  // those that are not there have no outs
};

// One of the outs of all layers.
template <typename T, typename R>
struct Place {
  const Layer<T, R>* layer = nullptr;
  int64_t out = 0;

  // The layer that has it, from this one on.
  HWY_INLINE void settle() {
    for (; out >= layer->outs; ++layer) out -= layer->outs;
  }
};

// Rows of x and of w whose sums stay in registers while both are read once per tile: as many as the registers hold.
#if HWY_TARGET <= HWY_AVX3
constexpr int kTileRows = 4, kTileStreams = 3;
#else
constexpr int kTileRows = 3, kTileStreams = 2;
#endif

// y[first .. first + count, out] for count rows of x and the rows of w at kStreams places.
template <int kStreams, int count, typename T, typename R>
HWY_INLINE void dot_rows(const Rows<T, R>& rows, int64_t first, const Place<T, R>* places) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t ins = rows.ins;
  const T* x = rows.x + first * ins;
  const T* w[kStreams];
  hn::Vec<decltype(d)> even[kStreams][count], odd[kStreams][count];
  HWY_UNROLL(8)
  for (int s = 0; s < kStreams; ++s) {
    w[s] = places[s].layer->w + places[s].out * ins;
    HWY_UNROLL(8)
    for (int r = 0; r < count; ++r) even[s][r] = odd[s][r] = hn::Zero(d);
  }
  int64_t i = 0;
  if constexpr (count >= kTileRows) {
    for (; i + 2 * lanes <= ins; i += 2 * lanes) {
      hn::Vec<decltype(d)> left[kStreams], right[kStreams];
      HWY_UNROLL(8)
      for (int s = 0; s < kStreams; ++s) left[s] = load(d, w[s] + i), right[s] = load(d, w[s] + i + lanes);
      HWY_UNROLL(8)
      for (int r = 0; r < count; ++r) {
        const auto low = load(d, x + r * ins + i), high = load(d, x + r * ins + i + lanes);
        HWY_UNROLL(8)
        for (int s = 0; s < kStreams; ++s) {
          even[s][r] = hn::MulAdd(left[s], low, even[s][r]);
          odd[s][r] = hn::MulAdd(right[s], high, odd[s][r]);
        }
      }
    }
  } else {
    for (; i + 2 * lanes <= ins; i += 2 * lanes) {
      HWY_UNROLL(8)
      for (int s = 0; s < kStreams; ++s) {
        if (kStreams > 1) hwy::Prefetch(w[s] + i + 512);
        const auto left = load(d, w[s] + i), right = load(d, w[s] + i + lanes);
        HWY_UNROLL(8)
        for (int r = 0; r < count; ++r) {
          even[s][r] = hn::MulAdd(left, load(d, x + r * ins + i), even[s][r]);
          odd[s][r] = hn::MulAdd(right, load(d, x + r * ins + i + lanes), odd[s][r]);
        }
      }
    }
  }
  HWY_UNROLL(8)
  for (int s = 0; s < kStreams; ++s) {
    HWY_UNROLL(8)
    for (int r = 0; r < count; ++r) {
      float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[s][r], odd[s][r])));
      for (int64_t k = i; k < ins; ++k) sum += static_cast<float>(w[s][k]) * static_cast<float>(x[r * ins + k]);
      places[s].layer->put(first + r, places[s].out, sum);
    }
  }
}

// Every row of x, kTogether at a time, with the rows of w in kStreams places, `each` from each place on: one stream
// alone gets little more than half of the memory's bandwidth. The sums stay in registers.
template <int kStreams, int kTogether, typename T, typename R>
void dot_streams(const Rows<T, R>& rows, int64_t begin, int64_t each) {
  Place<T, R> places[kStreams];
  for (int s = 0; s < kStreams; ++s) places[s] = {rows.layers.data(), begin + s * each};
  for (int64_t i = 0; i < each; ++i) {
    for (Place<T, R>& place : places) place.settle();
    int64_t row = 0;
    for (; row + kTogether <= rows.count; row += kTogether) dot_rows<kStreams, kTogether>(rows, row, places);
    if constexpr (kTogether > 2)
      for (; row + 2 <= rows.count; row += 2) dot_rows<kStreams, 2>(rows, row, places);
    for (; row < rows.count; ++row) dot_rows<kStreams, 1>(rows, row, places);
    for (Place<T, R>& place : places) ++place.out;
  }
}

template <int kStreams, int kTogether, typename T, typename R>
void dot_range(const Rows<T, R>& rows, int64_t begin, int64_t end) {
  const int64_t each = (end - begin) / kStreams, rest = begin + kStreams * each;
  dot_streams<kStreams, kTogether>(rows, begin, each);
  dot_streams<1, std::min(kTogether, 2)>(rows, rest, end - rest);
}

template <typename T, typename R>
void dot_all(const Rows<T, R>& rows, int64_t begin, int64_t end) {
  if (rows.count == 1)
    dot_range<8, 1>(rows, begin, end);
  else if (rows.count < kTileRows)
    dot_range<4, 2>(rows, begin, end);
  else
    dot_range<kTileStreams, kTileRows>(rows, begin, end);
}

constexpr int64_t kCombineRows = 8;

// `count` rows of x, at most kCombineRows, and columns of w [ins, outs] in blocks whose sums stay in the first-level
// cache.
template <typename T, typename R>
void combine_layer(const Rows<T, R>& rows, const Layer<T, R>& layer, int64_t first, int64_t count, int64_t begin,
                   int64_t end) {
  constexpr int64_t kBlock = 256;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t col = begin; col < end; col += kBlock) {
    const int64_t width = std::min(kBlock, end - col);
    HWY_ALIGN float sums[kCombineRows * kBlock] = {};
    for (int64_t k = 0; k < rows.ins; ++k)
      for (int64_t row = 0; row < count; ++row) {
        const float x = static_cast<float>(rows.x[(first + row) * rows.ins + k]);
        const T* w = layer.w + k * layer.outs + col;
        float* to = sums + row * kBlock;
        int64_t i = 0;
        for (; i + lanes <= width; i += lanes)
          hn::Store(hn::MulAdd(hn::Set(d, x), load(d, w + i), hn::Load(d, to + i)), d, to + i);
        for (; i < width; ++i) to[i] += x * static_cast<float>(w[i]);
      }
    for (int64_t row = 0; row < count; ++row)
      for (int64_t i = 0; i < width; ++i) layer.put(first + row, col + i, sums[row * kBlock + i]);
  }
}

template <typename T, typename R>
void combine_all(const Rows<T, R>& rows, int64_t begin, int64_t end) {
  for (const Layer<T, R>& layer : rows.layers) {
    const int64_t from = std::clamp<int64_t>(begin, 0, layer.outs), to = std::clamp<int64_t>(end, 0, layer.outs);
    for (int64_t row = 0; row < rows.count; row += kCombineRows)
      combine_layer(rows, layer, row, std::min(kCombineRows, rows.count - row), from, to);
    begin -= layer.outs, end -= layer.outs;
  }
}

template <typename T, typename R>
void run(const KernelCall& call, const RowsPlan& plan) {
  Rows<T, R> rows{call.inputs[0].as<T>(), plan.count, plan.ins, {}};
  int64_t outs = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const size_t bias = plan.bias == 0 ? 0 : plan.bias + i;
    rows.layers[i] = {call.inputs[1 + i].as<T>(), bias ? call.inputs[bias].as<float>() : nullptr,
                      plan.residual ? call.inputs[plan.residual].as<R>() : nullptr, call.outputs[i].as<R>(),
                      call.outputs[i].dims.back()};
    outs += rows.layers[i].outs;
  }
  parallel_for(outs, 64, [&](int64_t begin, int64_t end, int) {
    if (plan.out_in)
      dot_all(rows, begin, end);
    else
      combine_all(rows, begin, end);
  });
}

void run_rows(const KernelCall& call, const RowsPlan& plan) {
  const DType x = call.inputs[0].dtype, y = x == DType::f32 ? x : call.outputs[0].dtype;
  with_floats(x, y, [&](auto from, auto to) { run<decltype(from), decltype(to)>(call, plan); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(run_rows);

namespace {

KernelOffer make_rows(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts) {
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!spec.inputs[1 + i].storage.dense()) return {nullptr, "the weight is stored in blocks of codes"};
    if (spec.inputs[1 + i].dtype != spec.inputs[0].dtype) return {nullptr, "the weight has another dtype than x"};
  }
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (plan.count > 8 && !plan.any_count) return {nullptr, "more than eight rows"};
  return {kernel_of([plan](const KernelCall& call) { HWY_DYNAMIC_DISPATCH(run_rows)(call, plan); }), {}};
}

}  // namespace

KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(spec.inputs[0], spec.inputs[1], spec.attrs);
  const LinearOperands inputs = linear_operands(spec.attrs);
  if (inputs.low_rank != 0) return {nullptr, "a low-rank product is added"};
  const RowsPlan plan{shape.rows, shape.ins, shape.out_in, inputs.bias, inputs.last, is_batch_invariant(spec.attrs)};
  return spec.inputs[1].storage.dense() ? make_rows(spec, plan, facts) : make_coded_rows(spec, plan, facts);
}

KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(spec.inputs[0], spec.inputs[1], spec.attrs);
  const size_t bias = spec.attrs.integer("bias") != 0 ? 1 + spec.outputs.size() : 0;
  return make_rows(spec, {shape.rows, shape.ins, shape.out_in, bias, 0, is_batch_invariant(spec.attrs)}, facts);
}

}  // namespace headroom
#endif
