// 8-bit codes of a dynamic quantile map, for optimizer states and for the scales of quantized weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

// One of the two maps (dynamic_map-inl.h), in the form that kernels read.
//
// A level is zero, a decade, or one. With shift 0 for signed states and 1 for others, a level of `steps` values begins
// at rank steps - shift; `steps` is a power of two except at level zero. Step k of a level has the value first + k
// width.
struct DynamicMap {
  static constexpr size_t kLevels = 9;

  std::array<float, 256> value{};  // by code
  std::array<float, 256> bound{};  // by rank: larger magnitudes are nearer to the next rank
  int shift = 0;
  std::array<float, kLevels> enter{};  // larger magnitudes belong to this level or a higher one
  std::array<float, kLevels> steps{};
  std::array<float, kLevels> first{};  // value of its first step
  std::array<float, kLevels> width{};  // from a step to the next
  std::array<float, kLevels> per{};    // steps per unit of magnitude
};

const DynamicMap& dynamic_map(bool is_signed);
// The code nearest to `scaled`, an element divided by its block's largest magnitude.
uint8_t nearest_code(bool is_signed, float scaled);

// The factor that scales elements to [-1, 1]; 0 for a block of zeros.
inline float inverse_of(float absmax) { return absmax > 0 ? 1 / absmax : 0; }

}  // namespace headroom
