// Weights that the arena keeps as codes in blocks (passes/quantize_weights.h), computed from a checkpoint's tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "formats/safetensors.h"
#include "plan/plan.h"
#include "runtime/executor.h"

namespace headroom {

// Calls body(block, first element, values) for the part of every block that a piece holds, on the team; the piece
// begins at element `first` of the weight.
template <typename Body>
void each_block_part(const Storage& storage, int64_t first, std::span<const float> values, const Body& body) {
  const int64_t block = storage.block, end = first + static_cast<int64_t>(values.size());
  parallel_for((end - 1) / block - first / block + 1, 16, [&](int64_t from, int64_t to, int) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = first / block + i;
      const int64_t begin = std::max(first, at * block), stop = std::min(end, (at + 1) * block);
      body(at, begin, values.subspan(static_cast<size_t>(begin - first), static_cast<size_t>(stop - begin)));
    }
  });
}

// Scales as codes: after subtracting their mean, codes of the signed dynamic map, in blocks with a scale each (QLoRA,
// section 3, "Double Quantization").
struct CodedScales {
  float mean = 0;
  std::vector<float> outer;
  std::vector<uint8_t> codes;
};
float mean_of(std::span<const float> scales);
// Subtracts the mean from `scales`; `outer` has one element for each `block` of them, `codes` one for each.
void code_scales(std::span<float> scales, float mean, int64_t block, std::span<float> outer, std::span<uint8_t> codes);

// Quantises a stored tensor (F32, F16 or BF16) into a weight of the arena, piece by piece through the staging of
// program "load"; the tensor is read twice, for the scales and then for the codes, with double quantisation a third
// time. Throws Error as SafetensorsSet::read.
void load_coded(Executor& executor, const PersistentTensor& weight, const SafetensorsSet& files,
                const std::string& stored);

}  // namespace headroom
