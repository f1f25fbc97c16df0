// 32 random bits as a function of a key and an element's index: the same for any threads and any cut into ranges.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/counter_random.h"
#include "ops/step_scalars.h"

namespace headroom {

// Scrambles 32 bits (the finaliser of MurmurHash3, Appleby 2011).
constexpr uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// The key of a tensor's draws in one optimizer step; `hyper` holds the run's seed and the step.
inline uint64_t step_key(const float* hyper, uint64_t tensor) {
  uint64_t seed = 0;
  uint32_t step = 0;
  std::memcpy(&seed, hyper + kSeed, sizeof(seed));
  std::memcpy(&step, hyper + kStep, sizeof(step));
  return mix64(mix64(mix64(seed) ^ tensor) ^ step);
}

// The key of the elements whose index shares its upper 32 bits with `index`.
constexpr uint64_t block_key(uint64_t key, uint64_t index) { return mix64(key ^ (index >> 32)); }

// The bits of element `index`; `key` is the block_key() of its block. Two keyed rounds.
constexpr uint32_t counter_bits(uint64_t key, uint64_t index) {
  const uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  return mix32(mix32(static_cast<uint32_t>(index) + low) ^ high);
}

}  // namespace headroom
