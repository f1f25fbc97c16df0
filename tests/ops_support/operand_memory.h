// Where the operands of ops under test are: on the heap, unless a program puts them where another device can access
// them.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace headroom::op_test {

struct OperandMemory {
  std::byte* (*allocate)(size_t bytes);  // at least 64-byte aligned; `bytes` is a multiple of 64
  void (*release)(std::byte* memory) noexcept;
};

// Set it before the first operand is created.
inline OperandMemory& operand_memory() {
  static OperandMemory memory{[](size_t bytes) { return static_cast<std::byte*>(std::aligned_alloc(64, bytes)); },
                              [](std::byte* at) noexcept { std::free(at); }};
  return memory;
}

}  // namespace headroom::op_test
