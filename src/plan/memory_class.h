// The classes into which memory is broken down, and tensors of one class with a common name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace headroom {

enum class MemoryClass : uint8_t { weights, gradients, optimizer, activations, workspace, data, alignment };
constexpr size_t kMemoryClasses = 7;
std::string_view memory_class_name(MemoryClass kind);
using ClassBytes = std::array<int64_t, kMemoryClasses>;

// Tensors alive at the peak whose names differ only in the layer.
struct TensorGroup {
  std::string name;  // "model.layers.*.mlp.up_proj.weight"
  MemoryClass kind = MemoryClass::activations;
  int64_t count = 0;
  int64_t bytes = 0;  // of all
  int32_t first_layer = kNone;
  int32_t last_layer = kNone;
};

}  // namespace headroom
