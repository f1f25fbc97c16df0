// Where the operands of ops under test lie: the heap, unless a program puts them where another device reaches them too.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace headroom::op_test {

struct OperandMemory {
  std::byte* (*allocate)(size_t bytes);  // at least 64-byte aligned; `bytes` is a multiple of 64
  void (*release)(std::byte* memory) noexcept;
};

// Set before the first operand is made.
inline OperandMemory& operand_memory() {
  static OperandMemory memory{[](size_t bytes) { return static_cast<std::byte*>(std::aligned_alloc(64, bytes)); },
                              [](std::byte* at) noexcept { std::free(at); }};
  return memory;
}

}  // namespace headroom::op_test
