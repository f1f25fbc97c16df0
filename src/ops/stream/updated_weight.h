// The weight that an optimizer's update writes: f32; f32 with a bf16 copy; or bf16, widened, updated in f32 and rounded
// stochastically by its element's draw (counter_bits.h).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/bfloat16.h"
#include "ops/cpu/kernel.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/scalar_access.h"

namespace headroom {

struct UpdatedWeight {
  float* wide = nullptr;  // null where the weight is bf16
  bfloat16* narrow = nullptr;
  bfloat16* copy = nullptr;  // of `wide`, may be null
  int64_t first = 0;         // index of the first element in the whole weight: what its draws are keyed by
};

// `copy` is null where the call has none.
inline UpdatedWeight updated_weight(const TensorView& weight, const TensorView* copy, int64_t first = 0) {
  const bool narrow = weight.dtype == DType::bf16;
  return {narrow ? nullptr : weight.as<float>(), narrow ? weight.as<bfloat16>() : nullptr,
          copy ? copy->as<bfloat16>() : nullptr, first};
}

// Stochastic rounding by the top 16 of `bits`.
inline bfloat16 rounded_by(float value, uint32_t bits) {
  if (std::isnan(value)) return bfloat16(value);
  bfloat16 result;
  result.bits = static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + (bits >> 16)) >> 16);
  return result;
}

// For reference kernels: writes element i, `key` being the step_key() of the weight, whose element `first` is the first
// one here.
inline void write_weight(const TensorView& weight, const TensorView* copy, int64_t i, double value, uint64_t key,
                         int64_t first = 0) {
  const auto at = static_cast<uint64_t>(first + i);
  if (weight.dtype == DType::bf16)
    weight.as<bfloat16>()[i] = rounded_by(static_cast<float>(value), counter_bits(block_key(key, at), at));
  else
    write_element(weight, i, value);
  if (copy) write_element(*copy, i, read_element(weight, i));
}

}  // namespace headroom
