// A trained matrix in 8-bit codes with a scale per row: an update decodes a row, updates it in f32, and rounds it
// stochastically to the codes of its new scale, so that no wider copy of the weight is kept (torchao's
// int8_weight_only_quantized_training).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/bytes.h"
#include "base/error.h"
#include "ir/type.h"
#include "ops/stream/counter_bits.h"

namespace headroom {

// How such a matrix is stored.
inline Storage int8_rows_of(int64_t columns) {
  return {static_cast<int32_t>(columns), 8, DType::f32, CodeTable::integer};
}
inline bool is_int8_rows(const Storage& storage, int64_t columns) { return storage == int8_rows_of(columns); }

struct Int8Rows {
  int8_t* codes = nullptr;
  float* scales = nullptr;
  int64_t columns = 0;
};

// `data` holds rows x columns elements.
inline Int8Rows int8_rows(void* data, int64_t rows, int64_t columns) {
  auto* const bytes = static_cast<std::byte*>(data);
  const StorageLayout layout = storage_layout(int8_rows_of(columns), rows * columns);
  return {reinterpret_cast<int8_t*>(bytes), reinterpret_cast<float*>(bytes + layout.scales), columns};
}

// Bytes of one row in f32, of which an update has one per thread.
inline int64_t int8_row_bytes(int64_t columns) { return align_up(columns * int64_t{sizeof(float)}, 64); }

// The key of a row's draws; `key` is the step_key() of its weight. An element's is counter_bits(row's key, column).
constexpr uint64_t int8_row_key(uint64_t key, int64_t row) { return mix64(key ^ static_cast<uint64_t>(row)); }

// In [0, 1): what is added to an element, in units of the scale, before it is rounded down.
constexpr float unit_draw(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

constexpr float kMostInt8 = 127;
inline float int8_scale(float most) { return most / kMostInt8; }

// For reference kernels.
inline void decode_row(const Int8Rows& from, int64_t row, float* values) {
  for (int64_t i = 0; i < from.columns; ++i)
    values[i] = static_cast<float>(from.codes[row * from.columns + i]) * from.scales[row];
}
inline void encode_row(const float* values, const Int8Rows& to, int64_t row, uint64_t key) {
  float most = 0, fault = 0;
  for (int64_t i = 0; i < to.columns; ++i) most = std::max(most, std::fabs(values[i])), fault += values[i] - values[i];
  const float scale = int8_scale(most), inverse = scale > 0 ? 1 / scale : 0.0f;
  for (int64_t i = 0; i < to.columns; ++i) {
    const float drawn = unit_draw(counter_bits(int8_row_key(key, row), static_cast<uint64_t>(i)));
    const float code = std::floor(values[i] * inverse + drawn);
    to.codes[row * to.columns + i] = static_cast<int8_t>(std::min(std::max(-kMostInt8, code), kMostInt8));
  }
  to.scales[row] = scale + fault;  // NaN if an element is not finite
}

}  // namespace headroom
