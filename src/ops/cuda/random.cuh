// Random bits on the device, equal to those of ops/stream/counter_bits.h, and stochastic rounding with them.
#pragma once

#include "ops/cuda/device_language.cuh"
#include "ops/step_scalars.h"

namespace headroom::cuda {

// mix64 of base/counter_random.h.
HR_DEVICE uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// mix32 of ops/stream/counter_bits.h.
HR_DEVICE uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// The key of a tensor's random bits in one optimizer step; `hyper` holds the run's seed and the step.
HR_DEVICE uint64_t step_key(const float* hyper, uint64_t tensor) {
  const uint64_t low = __float_as_uint(hyper[kSeed]), high = __float_as_uint(hyper[kSeed + 1]);
  return mix64(mix64(mix64(low | high << 32) ^ tensor) ^ __float_as_uint(hyper[kStep]));
}

// The key for all elements whose index has the same upper 32 bits as `index`.
HR_DEVICE uint64_t block_key(uint64_t key, uint64_t index) { return mix64(key ^ (index >> 32)); }

// The random bits of element `index`; `key` is the block_key() of its block.
HR_DEVICE uint32_t counter_bits(uint64_t key, uint64_t index) {
  const uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  return mix32(mix32(static_cast<uint32_t>(index) + low) ^ high);
}

// The keys of a step's blocks, for a thread that mostly stays in one block. Element 0 is number `first` of its tensor.
class BlockKeys {
 public:
  HR_DEVICE explicit BlockKeys(uint64_t step, int64_t first = 0)
      : step_(step), key_(block_key(step, 0)), first_(static_cast<uint64_t>(first)) {}
  // counter_bits() of any element.
  HR_DEVICE uint32_t bits(uint64_t element) {
    const uint64_t index = first_ + element;
    const uint32_t block = static_cast<uint32_t>(index >> 32);
    if (block != block_) {
      block_ = block;
      key_ = block_key(step_, index);
    }
    return counter_bits(key_, index);
  }

 private:
  uint64_t step_, key_, first_;
  uint32_t block_ = 0;
};

// Rounds up with a probability equal to the distance from the lower neighbour, using the top of `bits`: 16 of them for
// bf16, 13 for fp16. NaN stays NaN. The results are those of ops/stream/updated_weight.h.
template <typename T>
HR_DEVICE T round_stochastically(float x, uint32_t bits);
template <>
HR_DEVICE Bf16 round_stochastically<Bf16>(float x, uint32_t bits) {
  if (x != x) return narrow<Bf16>(x);
  return {static_cast<uint16_t>((__float_as_uint(x) + (bits >> 16)) >> 16)};
}
// Subnormal numbers are multiples of 2^-24.
template <>
HR_DEVICE Half round_stochastically<Half>(float x, uint32_t bits) {
  if (x != x) return narrow<Half>(x);
  const uint32_t draw = bits >> 19;
  const float size = fabsf(x);
  float rounded = __uint_as_float((__float_as_uint(size) + draw) & ~0x1fffu);
  if (size < 0x1p-14f) {
    // Both products are exact, so that a fused multiply-add gives the same bits.
    const float steps = size * 0x1p24f + static_cast<float>(draw) * 0x1p-13f;
    rounded = static_cast<float>(static_cast<int32_t>(steps)) * 0x1p-24f;
  }
  return narrow<Half>(copysignf(rounded, x));
}

}  // namespace headroom::cuda
