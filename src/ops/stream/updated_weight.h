// The weight that an optimizer's update writes: f32; f32 with a narrow copy; or narrow itself, widened, updated in f32
// and rounded stochastically by its element's draw (counter_bits.h). Narrow is bf16 or f16.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/float_types.h"
#include "ops/stream/scalar_access.h"

namespace headroom {

struct UpdatedWeight {
  float* wide = nullptr;  // null if the weight is narrow
  void* narrow = nullptr;
  void* copy = nullptr;       // of `wide`, may be null
  DType dtype = DType::bf16;  // of `narrow` or of `copy`
  int64_t first = 0;          // index of the first element in the whole weight, as draws are keyed by it
};

// The copy of the weight that an update writes as output `index`; null if it has no such output.
inline const TensorView* narrow_copy_of(const KernelCall& call, size_t index) {
  return call.outputs.size() > index ? &call.outputs[index] : nullptr;
}

// `copy` is null if the call has none.
inline UpdatedWeight updated_weight(const TensorView& weight, const TensorView* copy, int64_t first = 0) {
  if (weight.dtype != DType::f32) return {nullptr, weight.data, nullptr, weight.dtype, first};
  return {weight.as<float>(), nullptr, copy ? copy->data : nullptr, copy ? copy->dtype : DType::bf16, first};
}

// Stochastic rounding by the top 16 of `bits`.
inline void round_by(float value, uint32_t bits, bfloat16& to) {
  if (std::isnan(value))
    to = bfloat16(value);
  else
    to.bits = static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + (bits >> 16)) >> 16);
}

// The same by the top 13. Subnormal numbers are multiples of 2^-24.
inline void round_by(float value, uint32_t bits, float16& to) {
  const uint32_t draw = bits >> 19;
  const float size = std::abs(value);
  float rounded = std::bit_cast<float>((std::bit_cast<uint32_t>(size) + draw) & ~0x1fffu);
  if (size < 0x1p-14f)
    rounded = static_cast<float>(static_cast<int32_t>(size * 0x1p24f + static_cast<float>(draw) * 0x1p-13f)) * 0x1p-24f;
  to = float16(std::isnan(value) ? value : std::copysign(rounded, value));
}

template <typename T>
T rounded_by(float value, uint32_t bits) {
  T result;
  round_by(value, bits, result);
  return result;
}

// Element i, widened to f32.
inline float read_updated(const UpdatedWeight& weight, int64_t i) {
  if (weight.wide) return weight.wide[i];
  float value = 0;
  with_narrow(weight.dtype,
              [&](auto type) { value = static_cast<float>(static_cast<decltype(type)*>(weight.narrow)[i]); });
  return value;
}

// Writes element i; `key` is the step_key() of the weight.
inline void write_updated(const UpdatedWeight& weight, int64_t i, float value, uint64_t key) {
  const auto at = static_cast<uint64_t>(weight.first + i);
  if (weight.wide) weight.wide[i] = value;
  if (weight.wide && !weight.copy) return;
  with_narrow(weight.dtype, [&](auto type) {
    using T = decltype(type);
    if (weight.wide)
      static_cast<T*>(weight.copy)[i] = T(value);
    else
      static_cast<T*>(weight.narrow)[i] = rounded_by<T>(value, counter_bits(block_key(key, at), at));
  });
}

// The same for tensor views, for reference kernels. `first`: the index in the whole weight of the views' first element.
inline void write_weight(const TensorView& weight, const TensorView* copy, int64_t i, double value, uint64_t key,
                         int64_t first = 0) {
  write_updated(updated_weight(weight, copy, first), i, static_cast<float>(value), key);
}

// Refreshes the copy, if there is one, of a weight that a skipped step leaves as it is: the copy's storage may be a
// window that was not loaded, because an update writes all of it.
inline void refresh_copy(const TensorView& weight, const TensorView* copy) {
  if (!copy) return;
  const UpdatedWeight to = updated_weight(weight, copy);
  parallel_for(weight.count(), 4096, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) write_updated(to, i, to.wide[i], 0);
  });
}

}  // namespace headroom
