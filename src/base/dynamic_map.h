// 8-bit codes of a dynamic quantile map: of an optimizer's states, and of the scales of quantised weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headroom {

// One of the two maps (dynamic_map-inl.h), as kernels look into it.
//
// A level is zero, a decade, or one. With shift 0 of signed states and 1 of others, the ranks of a level of `steps`
// values begin at steps - shift, a power of two but for zero: step k of them is low + k width from its decade's first.
struct DynamicMap {
  static constexpr size_t kLevels = 9;

  std::array<float, 256> value{};  // by code
  std::array<float, 256> bound{};  // by rank: larger magnitudes are nearer to the next one
  int shift = 0;
  std::array<float, kLevels> enter{};  // larger magnitudes belong to the level, or to a higher one
  std::array<float, kLevels> steps{};
  std::array<float, kLevels> first{};  // value of its first step
  std::array<float, kLevels> width{};  // from a step to the next
  std::array<float, kLevels> per{};    // steps to a unit of magnitude
};

const DynamicMap& dynamic_map(bool is_signed);
// Of the element `scaled` of a block, divided by the block's largest magnitude.
uint8_t nearest_code(bool is_signed, float scaled);

// What elements are divided by: 0 for a block of zeros.
inline float inverse_of(float absmax) { return absmax > 0 ? 1 / absmax : 0; }

}  // namespace headroom
