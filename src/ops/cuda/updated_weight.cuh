// The weight that an optimizer's update writes: ops/stream/updated_weight.h on the device.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/cuda/narrow_copy.h"
#include "ops/cuda/random.cuh"

namespace headroom::cuda {

// Stores N elements of a weight's copy starting at i.
template <int N>
HR_DEVICE void store_copy(const NarrowCopy& copy, int64_t i, const Floats<N>& value) {
  if (copy.type == FloatType::f16)
    store_floats(static_cast<Half*>(copy.at) + i, value);
  else
    store_floats(static_cast<Bf16*>(copy.at) + i, value);
}

// Stores N elements of a weight starting at i: as f32, with a narrow copy if there is one; in the second form narrow,
// rounded with the elements' random bits.
template <int N>
HR_DEVICE void store_weight(float* weight, const NarrowCopy& copy, BlockKeys&, int64_t i, const Floats<N>& value) {
  store_floats(weight + i, value);
  if (copy.at) store_copy(copy, i, value);
}

template <int N, typename W>
HR_DEVICE void store_weight(W* weight, const NarrowCopy&, BlockKeys& keys, int64_t i, const Floats<N>& value) {
  uint32_t bits[N];
  HR_UNROLL for (int j = 0; j < N; ++j) bits[j] =
      round_stochastically<W>(value.at[j], keys.bits(static_cast<uint64_t>(i + j))).bits;
  Raw<W, N> raw;
  raw.word[0] = bits[0];
  HR_UNROLL for (int j = 1; j < N; ++j) raw.word[j / 2] = j % 2 == 0 ? bits[j] : raw.word[j / 2] | bits[j] << 16;
  store_raw<N>(weight + i, raw);
}

// If the factor on the gradient is not finite, the step is skipped.
HR_DEVICE bool usable_factor(float clip) { return fabsf(clip) <= 3.402823466e38f; }

// Then refreshes the copy, if there is one, of `count` elements starting at `first`, as on the CPU. All threads of the
// grid call it. A narrow weight has no copy.
HR_DEVICE void refresh_copy(const float* weight, const NarrowCopy& copy, int64_t first, int64_t count) {
  if (!copy.at) return;
  for (int64_t i = first_index(); i < count; i += index_stride())
    store_copy(copy, first + i, load_floats<1>(weight + first + i));
}

template <typename W>
HR_DEVICE void refresh_copy(const W*, const NarrowCopy&, int64_t, int64_t) {}

}  // namespace headroom::cuda
