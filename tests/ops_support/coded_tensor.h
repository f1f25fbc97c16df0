// Tensors in blocks of codes, made only from the definitions.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/block_codes.h"
#include "base/dynamic_map.h"
#include "op_harness.h"

namespace headroom::op_test {

inline constexpr Storage kNf4{64, 4, DType::f32, CodeTable::nf4};
inline constexpr Storage kDoubled{64, 4, DType::f32, CodeTable::nf4, 256};
inline constexpr Storage kFp4{64, 4, DType::f32, CodeTable::fp4};
inline constexpr Storage kInt4{32, 4, DType::f32, CodeTable::integer};
inline constexpr Storage kInt4Wide{128, 4, DType::f32, CodeTable::integer};
inline constexpr Storage kInt8Groups{32, 8, DType::f32, CodeTable::integer};

// A weight and the values of its codes, by the definitions.
struct Coded {
  Tensor codes, decoded;
};

// Scales as codes of the signed map, minus their mean; the decoded scales replace `scales`.
inline void code_scales(const Storage& storage, const StorageLayout& layout, uint8_t* data,
                        std::vector<float>& scales) {
  float mean = 0;
  for (const float scale : scales) mean += scale / static_cast<float>(scales.size());
  auto* const outer = reinterpret_cast<float*>(data + layout.scale_scales);
  outer[layout.scale_scale_count] = mean;
  for (int64_t block = 0; block < layout.scale_scale_count; ++block) {
    const int64_t begin = block * storage.scale_block,
                  end = std::min<int64_t>(begin + storage.scale_block, layout.scale_count);
    float most = 0;
    for (int64_t i = begin; i < end; ++i) most = std::max(most, std::fabs(scales[static_cast<size_t>(i)] - mean));
    outer[block] = most;
    for (int64_t i = begin; i < end; ++i) {
      float& scale = scales[static_cast<size_t>(i)];
      const uint8_t code = nearest_code(true, (scale - mean) / most);
      data[layout.scales + i] = code;
      scale = dynamic_map(true).value[code] * most + mean;
    }
  }
}

inline Coded coded(const Tensor& dense, const Storage& storage) {
  Coded out{Tensor(ConcreteType{DType::f32, dense.type().dims, storage}), Tensor(DType::f32, dense.type().dims)};
  const StorageLayout layout = storage_layout(storage, dense.count());
  auto* const data = out.codes.as<uint8_t>();
  const auto values_of = [&](int64_t block) {
    const int64_t begin = block * storage.block;
    return std::span<const float>(dense.as<float>() + begin,
                                  static_cast<size_t>(std::min<int64_t>(storage.block, dense.count() - begin)));
  };
  std::vector<float> scales;
  for (int64_t block = 0; block < layout.scale_count; ++block) {
    scales.push_back(scale_of(storage.codes, storage.payload_bits, values_of(block)));
    encode(storage.codes, storage.payload_bits, scales.back(), values_of(block),
           data + code_bytes(block * storage.block, storage.payload_bits));
  }
  if (storage.scale_block != 0)
    code_scales(storage, layout, data, scales);
  else
    std::copy(scales.begin(), scales.end(), reinterpret_cast<float*>(data + layout.scales));
  for (int64_t block = 0; block < layout.scale_count; ++block)
    decode(storage.codes, storage.payload_bits, data + code_bytes(block * storage.block, storage.payload_bits),
           scales[static_cast<size_t>(block)], 0, static_cast<int64_t>(values_of(block).size()),
           out.decoded.as<float>() + block * storage.block);
  return out;
}

}  // namespace headroom::op_test
